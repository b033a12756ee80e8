// SPDX-License-Identifier: Apache-2.0
// Events in columns (FORMAT.md, "Events"): a step costs some 10 to 15 bytes instead of 100.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/record.h"

namespace epochmeter::runfile {

// Not compressed yet. At most kMaxColumnValues events; none gives an empty string. `ends` are those
// of its parts, for CompressParts.
std::string EncodeEvents(const std::vector<model::Event>& events,
                         std::vector<size_t>* ends = nullptr);
// The events in order, with every key, type and bit; false for bytes that are not that.
bool DecodeEvents(std::string_view bytes, std::vector<model::Event>* events);

// The bits of the byte that says what the events of a shape have.
inline constexpr uint8_t kHasRank = 1, kHasEpoch = 2, kHasStep = 4;
// In the place of the decimals: the numbers are stored as the bits of doubles.
inline constexpr uint8_t kDoubleBits = 255;

// Events that have all but their numbers in common, as columns with one entry for each.
struct EventGroup {
  model::Event shape;           // kind, name, keys; fields have the right types, but no values
  uint8_t parts = 0;            // kHasRank ...
  std::vector<size_t> members;  // places among all events, rising
  std::vector<int64_t> ranks, epochs, steps;  // empty where the events have none
  struct Field {                              // one of these three is filled
    std::vector<int64_t> integers;
    std::vector<double> numbers;
    std::vector<std::string_view> texts;
  };
  std::vector<Field> fields;
};
struct EventTable {
  std::vector<int64_t> t_ns;  // of all events, in order
  std::vector<EventGroup> groups;
};
// As DecodeEvents, without making events of them. Texts point into `bytes`.
bool DecodeEventTable(std::string_view bytes, EventTable* table);
// The event of a member of a group.
model::Event EventOf(const EventTable& table, const EventGroup& group, size_t member);

}  // namespace epochmeter::runfile
