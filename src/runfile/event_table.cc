// SPDX-License-Identifier: Apache-2.0
// Events read back from columns.
#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "base/bytes.h"
#include "runfile/column_codec.h"
#include "runfile/event_columns.h"

namespace epochmeter::runfile {
namespace {

using model::Event;
using model::EventField;

// What the events of one section may take in memory; a writer stays far below.
constexpr uint64_t kMaxFieldValues = 3'000'000;
constexpr uint64_t kMaxKeyBytes = uint64_t{16} << 20;

class TableDecoder {
 public:
  TableDecoder(std::string_view bytes, EventTable* table) : in_(bytes), table_(*table) {}

  bool Decode() {
    if (!ReadShapes() || !ReadOrder()) return false;
    for (EventGroup& group : table_.groups) {
      if (!group.members.empty() && !ReadGroup(group)) return false;
    }
    return in_.done();
  }

 private:
  bool ReadShapes() {
    uint64_t count = 0;
    if (!in_.Varint(&count) || count > in_.remaining() / 4) return false;
    table_.groups.resize(static_cast<size_t>(count));
    return std::all_of(table_.groups.begin(), table_.groups.end(),
                       [this](EventGroup& group) { return ReadShape(group); });
  }

  bool ReadShape(EventGroup& group) {
    uint8_t kind = 0;
    uint64_t fields = 0;
    if (!in_.U8(&kind) || kind >= model::kEventKindCount || !in_.U8(&group.parts)) return false;
    if (!in_.Text(&group.shape.name) || !in_.Varint(&fields)) return false;
    if (fields > in_.remaining() / 2) return false;
    group.shape.kind = static_cast<model::EventKind>(kind);
    for (uint64_t i = 0; i < fields; ++i) {
      EventField& field = group.shape.fields.emplace_back();
      uint8_t type = 0;
      if (!in_.Text(&field.key) || !in_.U8(&type) || type > 2) return false;
      if (type == 1) field.value = 0.0;
      if (type == 2) field.value = std::string();
    }
    group.fields.resize(group.shape.fields.size());
    return true;
  }

  static uint64_t KeyBytes(const Event& shape) {
    uint64_t bytes = shape.name.size();
    for (const EventField& field : shape.fields) bytes += field.key.size();
    return bytes;
  }

  // Which shape each event has, and its time.
  bool ReadOrder() {
    uint64_t count = 0;
    if (!in_.Varint(&count) || count == 0 || count > kMaxColumnValues) return false;
    std::vector<int64_t> shape_of;
    if (!Column(count, &shape_of) || !Column(count, &table_.t_ns)) return false;
    for (size_t i = 0; i < count; ++i) {
      if (shape_of[i] < 0 || static_cast<uint64_t>(shape_of[i]) >= table_.groups.size()) {
        return false;
      }
      table_.groups[static_cast<size_t>(shape_of[i])].members.push_back(i);
    }
    uint64_t field_values = 0, key_bytes = 0;
    for (const EventGroup& group : table_.groups) {
      field_values += group.members.size() * group.fields.size();
      key_bytes += group.members.size() * KeyBytes(group.shape);
    }
    return field_values <= kMaxFieldValues && key_bytes <= kMaxKeyBytes;
  }

  bool ReadGroup(EventGroup& group) {
    const size_t count = group.members.size();
    if ((group.parts & kHasRank) != 0 && !Column(count, &group.ranks)) return false;
    if ((group.parts & kHasEpoch) != 0 && !Column(count, &group.epochs)) return false;
    if ((group.parts & kHasStep) != 0 && !Column(count, &group.steps)) return false;
    for (size_t field = 0; field < group.fields.size(); ++field) {
      if (!ReadField(group, field)) return false;
    }
    return std::all_of(group.ranks.begin(), group.ranks.end(),
                       [](int64_t rank) { return rank >= INT32_MIN && rank <= INT32_MAX; });
  }

  bool ReadField(EventGroup& group, size_t field) {
    const size_t count = group.members.size();
    switch (group.shape.fields[field].value.index()) {
      case 0:
        return Column(count, &group.fields[field].integers);
      case 1:
        return ReadDoubles(count, &group.fields[field].numbers);
      default:
        return ReadTexts(count, &group.fields[field].texts);
    }
  }

  bool ReadDoubles(size_t count, std::vector<double>* numbers) {
    uint8_t decimals = 0;
    if (!in_.U8(&decimals) || (decimals > 15 && decimals != kDoubleBits)) return false;
    if (!Column(count, &scratch_)) return false;
    const double scale = std::pow(10.0, decimals == kDoubleBits ? 0 : decimals);
    numbers->reserve(count);
    for (const int64_t value : scratch_) {
      numbers->push_back(decimals == kDoubleBits ? std::bit_cast<double>(value)
                                                 : static_cast<double>(value) / scale);
    }
    return true;
  }

  bool ReadTexts(size_t count, std::vector<std::string_view>* texts) {
    if (!Column(count, &scratch_)) return false;
    for (const int64_t size : scratch_) {
      if (size < 0 || !in_.Raw(static_cast<size_t>(size), &texts->emplace_back())) return false;
    }
    return true;
  }

  bool Column(size_t count, std::vector<int64_t>* values) {
    int64_t first = 0;
    uint8_t encoding = 0;
    std::string_view bytes;
    return in_.Signed(&first) && in_.U8(&encoding) && in_.View(&bytes) &&
           DecodeColumn(static_cast<ColumnEncoding>(encoding), bytes, Packing::kPlanes, first,
                        count, values);
  }

  base::ByteReader in_;
  EventTable& table_;
  std::vector<int64_t> scratch_;
};

}  // namespace

bool DecodeEventTable(std::string_view bytes, EventTable* table) {
  *table = {};
  return TableDecoder(bytes, table).Decode();
}

model::Event EventOf(const EventTable& table, const EventGroup& group, size_t member) {
  model::Event event = group.shape;
  event.t_ns = table.t_ns[group.members[member]];
  if (!group.ranks.empty()) event.rank = static_cast<int32_t>(group.ranks[member]);
  if (!group.epochs.empty()) event.epoch = group.epochs[member];
  if (!group.steps.empty()) event.step = group.steps[member];
  for (size_t i = 0; i < group.fields.size(); ++i) {
    const EventGroup::Field& field = group.fields[i];
    if (!field.integers.empty()) event.fields[i].value = field.integers[member];
    if (!field.numbers.empty()) event.fields[i].value = field.numbers[member];
    if (!field.texts.empty()) event.fields[i].value = std::string(field.texts[member]);
  }
  return event;
}

bool DecodeEvents(std::string_view bytes, std::vector<model::Event>* events) {
  EventTable table;
  if (!DecodeEventTable(bytes, &table)) return false;
  events->clear();
  events->resize(table.t_ns.size());
  for (const EventGroup& group : table.groups) {
    for (size_t member = 0; member < group.members.size(); ++member) {
      (*events)[group.members[member]] = EventOf(table, group, member);
    }
  }
  return true;
}

}  // namespace epochmeter::runfile
