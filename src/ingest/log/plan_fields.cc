// SPDX-License-Identifier: Apache-2.0
// What each named number of a line is.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "ingest/log/line_draft.h"
#include "ingest/log/named_formats.h"
#include "ingest/log/quantities.h"
#include "ingest/log/units.h"
#include "ingest/log/vocabulary.h"

namespace epochmeter::ingest::log {
namespace {

constexpr size_t kMostFieldsKept = 128;

class FieldPlanner {
 public:
  explicit FieldPlanner(LineDraft& draft) : draft_(draft) {}

  void Run() {
    FindFormat();
    const auto& fields = draft_.scanned.fields;
    for (size_t i = 0; i < fields.size() && draft_.plan.fields.size() < kMostFieldsKept; ++i) {
      AddField(fields[i], i);
    }
  }

 private:
  // The number in the skeleton at which a value begins; signs may differ.
  std::optional<uint16_t> NumberAt(size_t offset) const {
    const auto* begin = draft_.skeleton.begin.data();
    const auto* end = begin + draft_.skeleton.numbers;
    const auto* found = std::lower_bound(begin, end, static_cast<uint32_t>(offset));
    if (found == end || *found > offset + 1) return std::nullopt;
    return static_cast<uint16_t>(found - begin);
  }

  void FindFormat() {
    for (const Field& field : draft_.scanned.fields) names_.push_back(NameOfField(field));
    const std::vector<std::string_view> views(names_.begin(), names_.end());
    format_ = FindNamedFormat(views);
    draft_.named_eval = format_ != nullptr && format_->kind == RecordKind::kEval;
  }

  // "[1,  2000] loss: 1.8": an epoch and its batch.
  bool IsEpochAndBatch(size_t index) const {
    if (index > 1 || draft_.scanned.fields.size() < 3) return false;
    const Field& first = draft_.scanned.fields[0];
    const Field& second = draft_.scanned.fields[1];
    const auto whole = [this](const Field& field) {
      return field.key.empty() && field.form == FieldForm::kNumber &&
             draft_.text.substr(field.begin, field.end - field.begin).find('.') ==
                 std::string_view::npos;
    };
    const std::string_view message = base::Trim(draft_.Message());
    return !message.empty() && message[0] == '[' && whole(first) && whole(second) &&
           second.end + 1 < draft_.text.size() && draft_.text[second.end] == ']' &&
           (draft_.text[second.end + 1] == ' ' || draft_.text[second.end + 1] == ':') &&
           base::Trim(draft_.text.substr(first.end, second.begin - first.end)) == ",";
  }

  void AddField(const Field& field, size_t index) {
    const bool pair_of_counters = IsEpochAndBatch(index);
    const NamedFormat::ValueRole* named =
        format_ == nullptr ? nullptr : format_->Find(names_[index], index);
    if (named == nullptr && !pair_of_counters && field.listed && field.binding == Binding::kNone &&
        field.form != FieldForm::kDuration && field.unit.empty()) {
      return;
    }
    if (field.form == FieldForm::kStamp) return;
    // An option of a command line.
    const bool option = field.key_begin >= 2 && draft_.text.substr(field.key_begin - 2, 2) == "--";
    if (option && (field.key_begin == 2 || draft_.text[field.key_begin - 3] != '-')) return;
    FieldPlan plan;
    plan.form = field.form;
    plan.average = field.average;
    plan.key = field.group.empty() ? field.key : field.group + "." + field.key;
    plan.unit = field.unit;
    if (!PlaceValue(field, &plan)) return;
    KeyMeaning meaning = MeaningOfField(field, &plan);
    if (pair_of_counters) {
      meaning = {.role = index == 0 ? Role::kEpoch : Role::kStepInEpoch};
      plan.key = index == 0 ? "epoch" : "batch";
    }
    if (named != nullptr) {
      meaning.role = named->role;
      plan.total_role = named->total.value_or(Role::kOther);
    }
    plan.role = meaning.role;
    plan.eval = meaning.eval;
    plan.average |= meaning.average;
    draft_.train_key |= meaning.train;
    if (plan.key.empty() && named == nullptr && !pair_of_counters) plan.role = RoleOfUnit(field);
    SettleRole(field, &plan);
    draft_.key_at.push_back(field.key_begin);
    draft_.plan.fields.push_back(std::move(plan));
  }

  // By its own name, the words behind it, or the names around it.
  static KeyMeaning MeaningOfField(const Field& field, FieldPlan* plan) {
    KeyMeaning meaning = MeaningOf(plan->key);
    // Without a name of its own: "in 0 epoch", "0.001 rate".
    const bool of_unit = MeaningOf(field.unit).role == Role::kEpoch;
    // "1epoch:train:1-50batch"
    if (of_unit && meaning.role == Role::kOther) {
      meaning.role = Role::kEpoch;
      plan->key = field.unit;
    }
    const std::string_view after = of_unit ? field.unit : field.after;
    if (meaning.role == Role::kOther && field.binding != Binding::kSeparator && !after.empty()) {
      const KeyMeaning behind = MeaningOf(after);
      const bool usable =
          behind.role != Role::kOther && (field.key.empty() || field.key.size() <= 2 ||
                                          behind.role == Role::kEpoch || field.key == "第");
      if (usable) {
        meaning = behind;
        plan->key = after;
      }
    }
    if (!field.group.empty()) {
      const bool eval = meaning.eval;
      const KeyMeaning own = MeaningOf(field.key);
      if (own.role != Role::kOther) meaning = own;
      meaning.eval |= eval;
      if (meaning.eval && meaning.role == Role::kLoss) meaning.role = Role::kEvalMetric;
    }
    if (field.form == FieldForm::kPair && NormalKey(plan->key) == "epochs") {
      meaning.role = Role::kEpoch;
    }
    return meaning;
  }

  // What the value's form, unit and line say against the name.
  void SettleRole(const Field& field, FieldPlan* plan) {
    const std::string name = NormalKey(plan->key);
    draft_.train_names += base::StartsWith(name, "train_") ? 1 : 0;
    draft_.run_total |= IsRunTotal(name);
    if (name == "score") {
      const bool boosted =
          base::ToLowerAscii(draft_.text).find("score at iteration") != std::string::npos;
      plan->role = boosted ? Role::kLoss : Role::kMetric;
    }
    const bool counts =
        IsCounter(plan->role) || (field.form == FieldForm::kPair && !plan->key.empty());
    if (counts && plan->eval) draft_.eval_counter = true;
    if (plan->role == Role::kTotalSteps && UnitOf(field.unit).dimension == Dimension::kSeconds) {
      plan->role = Role::kElapsed;
    }
    const double number =
        ScanNumber(draft_.text.substr(field.begin, field.end - field.begin)).number;
    FitUnit(number, plan);
    // A counter is a whole number, and no part of a sentence's list of figures.
    if (IsCounter(plan->role) &&
        (field.form == FieldForm::kDuration || field.form == FieldForm::kWord)) {
      plan->role = Role::kOther;
    }
    if (IsCounter(plan->role) && field.unit == "%") plan->role = Role::kPercent;
    // "0.1k" is whole, too.
    const double human = HumanFactor(field.unit);
    const double count = number * (human > 0 ? human : 1);
    const bool whole = std::abs(count - std::round(count)) <= 1e-9 * std::abs(count);
    if ((plan->role == Role::kStep || plan->role == Role::kStepInEpoch) && !whole) {
      plan->role = Role::kOther;
    }
    PlaceTwoCounters(field, plan);
    // BasicSR: "time (data): 0.771 (0.020)".
    if (plan->average && field.average && name == "time_data") plan->role = Role::kDataTime;
  }

  // "epoch/iter: 9/2579"
  static void PlaceTwoCounters(const Field& field, FieldPlan* plan) {
    const size_t slash = plan->key.find('/');
    if (field.form != FieldForm::kPair || slash == std::string::npos) return;
    const Role first = MeaningOf(std::string_view(plan->key).substr(0, slash)).role;
    const Role second = MeaningOf(std::string_view(plan->key).substr(slash + 1)).role;
    const bool of = second == Role::kTotalSteps || second == Role::kEpochs;
    if (!IsCounter(first) || !(of || IsCounter(second)) || first == second) return;
    plan->role = first;
    plan->total_role = second;
  }

  // What trainers print of a whole epoch or run.
  static bool IsRunTotal(std::string_view name) {
    return name == "train_runtime" || name == "train_wall" || name == "train_wps" ||
           name == "train_samples_per_second" || name == "train_steps_per_second";
  }

  bool PlaceValue(const Field& field, FieldPlan* plan) const {
    if (field.form == FieldForm::kWord) {
      const std::string word =
          base::ToLowerAscii(draft_.text.substr(field.begin, field.end - field.begin));
      const bool minus = field.begin > 0 && draft_.text[field.begin - 1] == '-';
      plan->constant = base::StartsWith(word, "nan")
                           ? std::numeric_limits<double>::quiet_NaN()
                           : (minus ? -1 : 1) * std::numeric_limits<double>::infinity();
      return true;
    }
    const auto number = NumberAt(field.begin);
    if (!number) return false;
    plan->number = plan->last_number = *number;
    while (plan->last_number + 1U < draft_.skeleton.numbers &&
           draft_.skeleton.begin[plan->last_number + 1U] < field.end) {
      ++plan->last_number;
    }
    if (field.form != FieldForm::kPair) return true;
    const auto total = NumberAt(field.total_begin);
    if (!total) return false;
    plan->total_number = *total;
    return true;
  }

  static Role RoleOfUnit(const Field& field) {
    if (field.form == FieldForm::kDuration) return Role::kOther;
    const UnitMeaning unit = UnitOf(field.unit);
    if (unit.dimension == Dimension::kSecondsPer && unit.counted == Counted::kSteps)
      return Role::kStepTime;
    if (unit.dimension == Dimension::kPerSecond && field.form == FieldForm::kNumber) {
      return Role::kThroughput;
    }
    return Role::kOther;
  }

  // `number`: the value as printed, of the first line of its kind.
  static void FitUnit(double number, FieldPlan* plan) {
    const bool memory = plan->role == Role::kMemory;
    // "elapsed time per iteration (ms)", "updt_s", "data_ms": the unit is in the name.
    std::string unit = plan->unit;
    if (unit.empty()) {
      const std::string name = NormalKey(plan->key);
      if (base::EndsWith(name, "_ms") || base::StartsWith(name, "ms_")) unit = "ms";
      const std::string_view last = std::string_view(name).substr(name.rfind('_') + 1);
      if (IsTime(plan->role) && last.size() < name.size() && SecondsOfUnit(last)) unit = last;
      if (memory && base::EndsWith(name, "_gb")) unit = "GB";
      if (memory && base::EndsWith(name, "_mb")) unit = "MB";
      if (memory && base::EndsWith(name, "_kb")) unit = "KB";
    }
    const UnitMeaning meaning = UnitOf(unit, memory ? UnitContext::kMemory : UnitContext::kAny);
    switch (plan->role) {
      case Role::kStepTime:
      case Role::kDataTime:
      case Role::kIntervalTime:
      case Role::kElapsed:
      case Role::kEpochTime:
      case Role::kEta:
        if (meaning.dimension == Dimension::kSeconds ||
            meaning.dimension == Dimension::kSecondsPer) {
          plan->factor = meaning.factor;
        }
        // "Speed: 3 s/it" and "time: 4 it/s" say by their unit what they are.
        if (meaning.dimension == Dimension::kPerSecond && plan->role == Role::kStepTime) {
          plan->role = Role::kThroughput;
          plan->factor = meaning.factor;
        }
        break;
      case Role::kThroughput:
        if (meaning.dimension == Dimension::kPerSecond) plan->factor = meaning.factor;
        if (meaning.dimension == Dimension::kSecondsPer) {
          plan->role = meaning.counted == Counted::kSteps ? Role::kStepTime : Role::kOther;
          plan->factor = meaning.factor;
        }
        if (meaning.dimension == Dimension::kSeconds) plan->role = Role::kStepTime;
        if (HumanFactor(unit) > 0) plan->factor = HumanFactor(unit);  // "1.2k"
        break;
      case Role::kMemory:
        FitMemory(number, unit, meaning, plan);
        break;
      case Role::kPercent:
        break;
      default: {
        const double human = HumanFactor(unit);
        if (human > 0) plan->factor = human;
      }
    }
  }

  // Without a unit frameworks print MiB, or bytes; a share is no memory.
  static void FitMemory(double number, std::string_view unit, const UnitMeaning& meaning,
                        FieldPlan* plan) {
    constexpr double kMostMib = 4'000'000;  // 4 TB
    const std::string name = NormalKey(plan->key);
    const bool share = unit == "%" || name.find("util") != std::string::npos ||
                       name.find("usage") != std::string::npos ||
                       name.find("percent") != std::string::npos;
    if (meaning.dimension == Dimension::kBytes) {
      plan->factor = meaning.factor;
    } else if (share) {
      plan->role = Role::kOther;
    } else if (base::EndsWith(name, "bytes") || number > kMostMib) {
      plan->factor = 1;
    } else {
      plan->factor = 1024.0 * 1024.0;
    }
  }

  LineDraft& draft_;
  const NamedFormat* format_ = nullptr;
  std::vector<std::string> names_;
};

}  // namespace

void PlanFields(LineDraft* draft) { FieldPlanner(*draft).Run(); }

}  // namespace epochmeter::ingest::log
