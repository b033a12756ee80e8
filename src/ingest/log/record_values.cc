// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/record_values.h"

#include <cmath>

#include "ingest/log/quantities.h"
#include "ingest/log/units.h"

namespace epochmeter::ingest::log {
namespace {

// Values of a line while they are read: those of the record before are written over, not made anew.
class ValueList {
 public:
  ValueList(std::vector<HeldRecord::Value>* values, size_t fields) : values_(values) {
    values_->resize(fields + kRoom);
  }
  ValueList(const ValueList&) = delete;
  ValueList& operator=(const ValueList&) = delete;
  ~ValueList() { values_->resize(size_); }

  // Where the next value goes; it counts from Add on.
  HeldRecord::Value& Next() {
    if (size_ == values_->size()) values_->resize(size_ + kRoom);
    return (*values_)[size_] = {};
  }
  void Add() { ++size_; }
  const HeldRecord::Value& back() const { return (*values_)[size_ - 1]; }

 private:
  static constexpr size_t kRoom = 4;  // for the second numbers of pairs
  std::vector<HeldRecord::Value>* values_;
  size_t size_ = 0;
};

// The second number of a pair as a value of its own.
void AddTotal(const FieldPlan& field, const Skeleton& skeleton, std::string_view text,
              ValueList* values) {
  if (field.total_number >= skeleton.numbers) return;
  const uint32_t begin = skeleton.begin[field.total_number];
  const NumberScan scan = ScanNumber(text.substr(begin));
  if (scan.size == 0) return;
  HeldRecord::Value& value = values->Next();
  value.field = &field;
  value.total = true;
  value.role = field.total_role;
  value.begin = begin;
  value.size = static_cast<uint32_t>(scan.size);
  value.number = value.value = scan.number;
  values->Add();
}

bool IsWhole(double number) {
  return std::abs(number) < 1e15 && number == static_cast<double>(static_cast<int64_t>(number));
}

// Behind the last number of "2h3m" and "2 hours 3 minutes": where its unit ends.
size_t EndOfUnit(std::string_view text, size_t at) {
  const auto in_word = [text](size_t i) {
    const char lower = static_cast<char>(text[i] | 0x20);
    return (lower >= 'a' && lower <= 'z') || (text[i] >= '0' && text[i] <= '9') || text[i] == '.' ||
           static_cast<signed char>(text[i]) < 0;
  };
  size_t end = at;
  while (end < text.size() && in_word(end)) ++end;
  if (end > at || end + 1 >= text.size() || text[end] != ' ') return end;
  ++end;
  const size_t unit = end;
  while (end < text.size() && in_word(end)) ++end;
  return SecondsOfUnit(text.substr(unit, end - unit)) ? end : at;
}

bool ReadOne(const FieldPlan& field, const Skeleton& skeleton, std::string_view text,
             HeldRecord::Value* value) {
  value->field = &field;
  value->role = field.role;
  if (field.form == FieldForm::kWord) {
    value->number = value->value = field.constant;
    return true;
  }
  if (field.last_number >= skeleton.numbers) return false;
  value->begin = skeleton.begin[field.number];
  if (field.form == FieldForm::kDuration) {
    const uint32_t last = skeleton.begin[field.last_number];
    size_t end = last + ScanNumber(text.substr(last)).size;
    if (text[last > 0 ? last - 1 : 0] != ':') end = EndOfUnit(text, end);  // "2h3m"
    value->size = static_cast<uint32_t>(end) - value->begin;
    const auto seconds = ParseDurationText(text.substr(value->begin, value->size));
    if (!seconds) return false;
    value->number = value->value = *seconds;
    return true;
  }
  const NumberScan scan = ScanNumber(text.substr(value->begin));
  if (scan.size == 0) return false;
  value->size = static_cast<uint32_t>(scan.size);
  value->number = scan.number;
  value->value = scan.number * field.factor;
  // "Iter: 0.1k" is the hundredth, as if it were printed so.
  if (field.factor != 1 && IsCounter(field.role)) {
    value->number = value->value = std::round(value->value);
  }
  return true;
}

void NoteCounter(const HeldRecord::Value& value, HeldRecord* record) {
  if (value.role == Role::kEpoch && std::isnan(record->epoch)) record->epoch = value.value;
  if ((value.role == Role::kStep || value.role == Role::kStepInEpoch) && std::isnan(record->step) &&
      IsWhole(value.value)) {
    record->step = value.value;
  }
}

void Begin(const ProgressLine& line, HeldRecord* record) {
  record->plan = line.plan;
  record->place = line.place;
  record->last_line = line.place.line;
  record->header_epoch.reset();
  record->epoch = record->step = record->total = std::numeric_limits<double>::quiet_NaN();
}

void ReadField(const FieldPlan& field, const ProgressLine& line, HeldRecord* record,
               ValueList* values) {
  HeldRecord::Value& value = values->Next();
  if (!ReadOne(field, *line.skeleton, line.text, &value)) return;
  values->Add();
  if (IsCounter(value.role)) NoteCounter(value, record);
  const bool total = value.role == Role::kTotalSteps || value.role == Role::kEpochs;
  if (total && !IsWhole(value.number)) value.role = Role::kOther;
  if (field.form != FieldForm::kPair) return;
  AddTotal(field, *line.skeleton, line.text, values);
  NoteCounter(values->back(), record);  // "epoch/iter: 9/2579"
  const bool steps = field.role == Role::kStep || field.role == Role::kStepInEpoch;
  if (steps && std::isnan(record->total)) record->total = values->back().number;
}

Role Meant(Role role, bool in_epoch) {
  switch (role) {
    case Role::kStep:
    case Role::kStepInEpoch:
      return in_epoch ? Role::kStepInEpoch : Role::kStep;
    case Role::kTotalSteps:
    case Role::kStepsPerEpoch:
      return in_epoch ? Role::kStepsPerEpoch : Role::kTotalSteps;
    default:
      return role;
  }
}

}  // namespace

void ReadValues(const ProgressLine& line, HeldRecord* record) {
  Begin(line, record);
  record->text.assign(line.text);
  record->main_size = static_cast<uint32_t>(line.text.size());
  record->stamp.assign(line.stamp);
  ValueList values(&record->values, line.plan->fields.size());
  for (const FieldPlan& field : line.plan->fields) ReadField(field, line, record, &values);
}

void ReadCounters(const ProgressLine& line, HeldRecord* record) {
  Begin(line, record);
  ValueList values(&record->values, line.plan->fields.size());
  for (const FieldPlan& field : line.plan->fields) {
    if (IsCounter(field.role)) ReadField(field, line, record, &values);
  }
}

void GiveRecord(const HeldRecord& record, uint32_t start, std::optional<bool> in_epoch,
                std::vector<LogValue>* values, LogSink* sink) {
  values->resize(record.values.size());
  const std::string_view text = record.text;
  RolePlaces places{};
  const bool samples = record.plan->counts_samples;
  for (size_t i = record.values.size(); i-- > 0;) {
    const HeldRecord::Value& value = record.values[i];
    Role role = value.role;
    if (in_epoch) role = Meant(role, *in_epoch);
    if (samples && IsSteps(role)) role = value.total ? Role::kOther : Role::kSamples;
    const FieldPlan& field = *value.field;
    (*values)[i] = {.key = value.total ? field.total_key : field.key,
                    .text = text.substr(value.begin, value.size),
                    .unit = value.total ? std::string_view() : std::string_view(field.unit),
                    .number = value.number,
                    .value = value.value,
                    .role = role};
    places[static_cast<size_t>(role)] = static_cast<uint16_t>(i + 1);
  }
  LogRecord given;
  given.kind = record.kind;
  given.place = record.place;
  given.last_line = record.last_line;
  given.start = start;
  given.shape = record.plan->shape;
  given.stamp = record.stamp;
  given.values = *values;
  given.places = &places;
  given.header_epoch = record.header_epoch;
  given.text = text.substr(0, record.main_size);
  sink->OnRecord(given);
}

}  // namespace epochmeter::ingest::log
