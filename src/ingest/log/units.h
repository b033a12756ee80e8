// SPDX-License-Identifier: Apache-2.0
// What the units behind printed numbers mean. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace epochmeter::ingest::log {

enum class Dimension : uint8_t {
  kNone,  // not known
  kSeconds,
  kSecondsPer,  // s of one `counted`: "s/it", "ms/step"
  kPerSecond,   // `counted` in a second: "images/s"
  kBytes,
  kRatio,
  kCount
};
enum class Counted : uint8_t {
  kNothing,
  kSteps,
  kSamples,
  kTokens,
  kEpochs,
  kBytes,
  kFlops,
  kOther
};

struct UnitMeaning {
  Dimension dimension = Dimension::kNone;
  double factor = 1;  // printed number times this is in s, 1/s, bytes or a ratio
  Counted counted = Counted::kNothing;
  bool per_device = false;  // "tokens/s/gpu"
};

// Where a unit stands. Of memory, tools that print MB or GB mean powers of 1024.
enum class UnitContext : uint8_t { kAny, kMemory };

// "ms", "sec", "s/it", "images/s", "ins/s", "GiB", "M", "%". A plural or an ending point changes
// nothing. `counted / s` of an unknown word is kPerSecond of kOther.
UnitMeaning UnitOf(std::string_view unit, UnitContext context = UnitContext::kAny);

// Of a unit of time alone: "ms", "min", "days", "小时".
std::optional<double> SecondsOfUnit(std::string_view unit);
// "K", "M", "B" and "T" behind a rounded number; 0 for anything else ("G" is of memory).
double HumanFactor(std::string_view suffix);
// Of what: "images", "it", "ins"; kNothing for a word that is not known.
Counted CountedOf(std::string_view word);

}  // namespace epochmeter::ingest::log
