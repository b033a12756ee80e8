// SPDX-License-Identifier: Apache-2.0
#include "runfile/event_columns.h"

#include <array>
#include <bit>
#include <cmath>
#include <map>

#include "base/bytes.h"
#include "base/check.h"
#include "runfile/column_codec.h"

namespace epochmeter::runfile {
namespace {

using model::Event;
using model::EventField;

constexpr uint8_t kHasRank = 1, kHasEpoch = 2, kHasStep = 4;
constexpr uint8_t kDoubleBits = 255;
// Powers of ten that a column of doubles may be stored in: seconds as ms, us or ns.
constexpr std::array<uint8_t, 4> kDecimals = {0, 3, 6, 9};
constexpr double kExactBelow = 9e15;
// What the events of one section may take in memory; a writer stays far below.
constexpr uint64_t kMaxFieldValues = 3'000'000;
constexpr uint64_t kMaxKeyBytes = uint64_t{16} << 20;

// Everything of an event but its numbers.
std::string ShapeOf(const Event& event) {
  base::ByteWriter out;
  out.U8(static_cast<uint8_t>(event.kind));
  out.U8(static_cast<uint8_t>((event.rank ? kHasRank : 0) | (event.epoch ? kHasEpoch : 0) |
                              (event.step ? kHasStep : 0)));
  out.Text(event.name);
  out.Varint(event.fields.size());
  for (const EventField& field : event.fields) {
    out.Text(field.key);
    out.U8(static_cast<uint8_t>(field.value.index()));
  }
  return out.Take();
}

void PutColumn(const std::vector<int64_t>& values, bool plain, base::ByteWriter& out) {
  const EncodedColumn column = EncodeColumn(values, plain, Packing::kPlanes);
  out.Signed(values.front());
  out.U8(static_cast<uint8_t>(column.encoding));
  out.Text(column.bytes);
}

// The doubles as whole steps of 10^-decimals, when every bit comes back.
bool InDecimals(const std::vector<double>& values, uint8_t decimals, std::vector<int64_t>* steps) {
  const double scale = std::pow(10.0, decimals);
  steps->clear();
  for (const double value : values) {
    if (!(std::fabs(value * scale) < kExactBelow)) return false;
    const int64_t step = std::llround(value * scale);
    const double back = static_cast<double>(step) / scale;
    if (std::bit_cast<uint64_t>(back) != std::bit_cast<uint64_t>(value)) return false;
    steps->push_back(step);
  }
  return true;
}

void PutDoubles(const std::vector<double>& values, base::ByteWriter& out) {
  std::vector<int64_t> steps;
  for (const uint8_t decimals : kDecimals) {
    if (!InDecimals(values, decimals, &steps)) continue;
    out.U8(decimals);
    PutColumn(steps, false, out);
    return;
  }
  steps.clear();
  for (const double value : values) steps.push_back(std::bit_cast<int64_t>(value));
  out.U8(kDoubleBits);
  PutColumn(steps, true, out);
}

using Group = std::vector<const Event*>;

template <typename Get>
void PutIntegers(const Group& group, const Get& get, base::ByteWriter& out) {
  std::vector<int64_t> values;
  values.reserve(group.size());
  for (const Event* event : group) values.push_back(get(*event));
  PutColumn(values, false, out);
}

void PutTexts(const Group& group, size_t field, base::ByteWriter& out) {
  const auto text = [field](const Event& event) -> const std::string& {
    return std::get<std::string>(event.fields[field].value);
  };
  PutIntegers(
      group, [&text](const Event& e) { return static_cast<int64_t>(text(e).size()); }, out);
  for (const Event* event : group) out.Raw(text(*event));
}

void PutField(const Group& group, size_t field, base::ByteWriter& out) {
  switch (group.front()->fields[field].value.index()) {
    case 0:
      PutIntegers(
          group, [field](const Event& e) { return std::get<int64_t>(e.fields[field].value); }, out);
      break;
    case 1: {
      std::vector<double> values;
      for (const Event* e : group) values.push_back(std::get<double>(e->fields[field].value));
      PutDoubles(values, out);
      break;
    }
    default:
      PutTexts(group, field, out);
  }
}

void PutGroup(const Group& group, base::ByteWriter& out) {
  const Event& sample = *group.front();
  if (sample.rank)
    PutIntegers(
        group, [](const Event& e) { return int64_t{*e.rank}; }, out);
  if (sample.epoch)
    PutIntegers(
        group, [](const Event& e) { return *e.epoch; }, out);
  if (sample.step)
    PutIntegers(
        group, [](const Event& e) { return *e.step; }, out);
  for (size_t field = 0; field < sample.fields.size(); ++field) PutField(group, field, out);
}

struct Shape {
  Event event;  // without numbers; fields have the right types
  uint8_t parts = 0;
  uint64_t key_bytes = 0;
  std::vector<size_t> members;  // indices of its events
};

class EventDecoder {
 public:
  explicit EventDecoder(std::string_view bytes) : in_(bytes) {}

  bool Decode(std::vector<Event>* events) {
    if (!ReadShapes() || !ReadOrder(events)) return false;
    for (const Shape& shape : shapes_) {
      if (!shape.members.empty() && !ReadGroup(shape, *events)) return false;
    }
    return in_.done();
  }

 private:
  bool ReadShapes() {
    uint64_t count = 0;
    if (!in_.Varint(&count) || count > in_.remaining() / 4) return false;
    shapes_.resize(static_cast<size_t>(count));
    for (Shape& shape : shapes_) {
      if (!ReadShape(shape)) return false;
    }
    return true;
  }

  bool ReadShape(Shape& shape) {
    uint8_t kind = 0;
    uint64_t fields = 0;
    if (!in_.U8(&kind) || kind >= model::kEventKindCount || !in_.U8(&shape.parts)) return false;
    if (!in_.Text(&shape.event.name) || !in_.Varint(&fields)) return false;
    if (fields > in_.remaining() / 2) return false;
    shape.event.kind = static_cast<model::EventKind>(kind);
    shape.key_bytes = shape.event.name.size();
    for (uint64_t i = 0; i < fields; ++i) {
      EventField& field = shape.event.fields.emplace_back();
      uint8_t type = 0;
      if (!in_.Text(&field.key) || !in_.U8(&type) || type > 2) return false;
      if (type == 1) field.value = 0.0;
      if (type == 2) field.value = std::string();
      shape.key_bytes += field.key.size();
    }
    return true;
  }

  // Which shape each event has, and its time.
  bool ReadOrder(std::vector<Event>* events) {
    uint64_t count = 0;
    if (!in_.Varint(&count) || count == 0 || count > kMaxColumnValues) return false;
    std::vector<int64_t> shape_of, times;
    if (!Column(count, &shape_of) || !Column(count, &times)) return false;
    uint64_t field_values = 0, key_bytes = 0;
    for (size_t i = 0; i < count; ++i) {
      if (shape_of[i] < 0 || static_cast<uint64_t>(shape_of[i]) >= shapes_.size()) return false;
      Shape& shape = shapes_[static_cast<size_t>(shape_of[i])];
      shape.members.push_back(i);
      field_values += shape.event.fields.size();
      key_bytes += shape.key_bytes;
    }
    if (field_values > kMaxFieldValues || key_bytes > kMaxKeyBytes) return false;
    events->clear();
    events->reserve(static_cast<size_t>(count));
    for (size_t i = 0; i < count; ++i) {
      events->push_back(shapes_[static_cast<size_t>(shape_of[i])].event);
      events->back().t_ns = times[i];
    }
    return true;
  }

  template <typename Set>
  bool Integers(const Shape& shape, std::vector<Event>& events, const Set& set) {
    std::vector<int64_t> values;
    if (!Column(shape.members.size(), &values)) return false;
    for (size_t i = 0; i < values.size(); ++i) set(events[shape.members[i]], values[i]);
    return true;
  }

  bool ReadGroup(const Shape& shape, std::vector<Event>& events) {
    bool ok = true;
    const auto set_rank = [&ok](Event& e, int64_t v) {
      ok = ok && v >= INT32_MIN && v <= INT32_MAX;
      e.rank = static_cast<int32_t>(v);
    };
    const auto set_epoch = [](Event& e, int64_t v) { e.epoch = v; };
    const auto set_step = [](Event& e, int64_t v) { e.step = v; };
    if ((shape.parts & kHasRank) != 0 && !Integers(shape, events, set_rank)) return false;
    if ((shape.parts & kHasEpoch) != 0 && !Integers(shape, events, set_epoch)) return false;
    if ((shape.parts & kHasStep) != 0 && !Integers(shape, events, set_step)) return false;
    for (size_t field = 0; field < shape.event.fields.size(); ++field) {
      if (!ReadField(shape, field, events)) return false;
    }
    return ok;
  }

  bool ReadField(const Shape& shape, size_t field, std::vector<Event>& events) {
    switch (shape.event.fields[field].value.index()) {
      case 0:
        return Integers(shape, events, [field](Event& e, int64_t v) { e.fields[field].value = v; });
      case 1:
        return ReadDoubles(shape, field, events);
      default:
        return ReadTexts(shape, field, events);
    }
  }

  bool ReadDoubles(const Shape& shape, size_t field, std::vector<Event>& events) {
    uint8_t decimals = 0;
    if (!in_.U8(&decimals) || (decimals > 15 && decimals != kDoubleBits)) return false;
    const double scale = std::pow(10.0, decimals);
    return Integers(shape, events, [=](Event& e, int64_t v) {
      e.fields[field].value =
          decimals == kDoubleBits ? std::bit_cast<double>(v) : static_cast<double>(v) / scale;
    });
  }

  bool ReadTexts(const Shape& shape, size_t field, std::vector<Event>& events) {
    std::vector<int64_t> sizes;
    if (!Column(shape.members.size(), &sizes)) return false;
    for (size_t i = 0; i < sizes.size(); ++i) {
      std::string_view text;
      if (sizes[i] < 0 || !in_.Raw(static_cast<size_t>(sizes[i]), &text)) return false;
      events[shape.members[i]].fields[field].value = std::string(text);
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
  std::vector<Shape> shapes_;
};

}  // namespace

std::string EncodeEvents(const std::vector<Event>& events) {
  if (events.empty()) return {};
  EPM_CHECK(events.size() <= kMaxColumnValues);
  std::map<std::string, size_t> index_of;
  std::vector<const std::string*> shapes;
  std::vector<Group> groups;
  std::vector<int64_t> order, times;
  for (const Event& event : events) {
    const auto [found, is_new] = index_of.emplace(ShapeOf(event), groups.size());
    if (is_new) {
      shapes.push_back(&found->first);
      groups.emplace_back();
    }
    groups[found->second].push_back(&event);
    order.push_back(static_cast<int64_t>(found->second));
    times.push_back(event.t_ns);
  }
  base::ByteWriter out;
  out.Varint(shapes.size());
  for (const std::string* shape : shapes) out.Raw(*shape);
  out.Varint(events.size());
  PutColumn(order, false, out);
  PutColumn(times, false, out);
  for (const Group& group : groups) PutGroup(group, out);
  return out.Take();
}

bool DecodeEvents(std::string_view bytes, std::vector<Event>* events) {
  return EventDecoder(bytes).Decode(events);
}

}  // namespace epochmeter::runfile
