// SPDX-License-Identifier: Apache-2.0
#include "runfile/event_columns.h"

#include <algorithm>
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

// Powers of ten that a column of doubles may be stored in: seconds as ms, us or ns.
constexpr std::array<uint8_t, 4> kDecimals = {0, 3, 6, 9};
constexpr double kExactBelow = 9e15;
// Fewer values are stored as differences: the empty planes of plain ones cost more.
constexpr size_t kLeastNoise = 256;
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

// What is written, and where its parts end.
struct Parts {
  base::ByteWriter bytes;
  std::vector<size_t> ends;
};

void PutColumn(const std::vector<int64_t>& values, bool plain, Parts& out) {
  const EncodedColumn column = EncodeColumn(values, plain, Packing::kPlanes);
  out.bytes.Signed(values.front());
  out.bytes.U8(static_cast<uint8_t>(column.encoding));
  out.bytes.Text(column.bytes);
  if (column.bytes.empty()) return;
  AddPlaneEnds(column.bytes, out.bytes.size() - column.bytes.size(), &out.ends);
}

// Whether the values are nearer to one of them than to their neighbours: noise without memory,
// whose differences are larger than itself.
bool IsNoise(const std::vector<int64_t>& values) {
  if (values.size() < kLeastNoise) return false;
  const auto width = [](int64_t from, int64_t to) {
    const uint64_t step = static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
    return std::bit_width(base::ZigZag(static_cast<int64_t>(step)));
  };
  std::vector<int64_t> sorted = values;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  int64_t saved_bits = 0;
  for (size_t i = 1; i < values.size(); ++i) {
    saved_bits += width(values[i - 1], values[i]) - width(*middle, values[i]);
  }
  return saved_bits * 4 > static_cast<int64_t>(values.size());
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

void PutDoubles(const std::vector<double>& values, Parts& out) {
  std::vector<int64_t> steps;
  for (const uint8_t decimals : kDecimals) {
    if (!InDecimals(values, decimals, &steps)) continue;
    out.bytes.U8(decimals);
    PutColumn(steps, IsNoise(steps), out);
    return;
  }
  steps.clear();
  for (const double value : values) steps.push_back(std::bit_cast<int64_t>(value));
  out.bytes.U8(kDoubleBits);
  PutColumn(steps, true, out);
}

using Group = std::vector<const Event*>;

template <typename Get>
void PutIntegers(const Group& group, const Get& get, Parts& out) {
  std::vector<int64_t> values;
  values.reserve(group.size());
  for (const Event* event : group) values.push_back(get(*event));
  PutColumn(values, IsNoise(values), out);
}

void PutTexts(const Group& group, size_t field, Parts& out) {
  const auto text = [field](const Event& event) -> const std::string& {
    return std::get<std::string>(event.fields[field].value);
  };
  PutIntegers(
      group, [&text](const Event& e) { return static_cast<int64_t>(text(e).size()); }, out);
  for (const Event* event : group) out.bytes.Raw(text(*event));
}

void PutField(const Group& group, size_t field, Parts& out) {
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

void PutGroup(const Group& group, Parts& out) {
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

}  // namespace

std::string EncodeEvents(const std::vector<Event>& events, std::vector<size_t>* ends) {
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
  Parts out;
  out.bytes.Varint(shapes.size());
  for (const std::string* shape : shapes) out.bytes.Raw(*shape);
  out.bytes.Varint(events.size());
  PutColumn(order, false, out);
  PutColumn(times, false, out);
  for (const Group& group : groups) PutGroup(group, out);
  if (ends != nullptr) *ends = std::move(out.ends);
  return out.bytes.Take();
}

}  // namespace epochmeter::runfile
