// SPDX-License-Identifier: Apache-2.0
// What a time can be at all. Records of damaged or hostile files have any; with the limits held
// where records become a run, differences and sums of times need no care anywhere behind.
#pragma once

#include <cstdint>
#include <optional>

#include "model/record.h"

namespace epochmeter::model {

// 36 years: of CLOCK_MONOTONIC, and of a period.
inline constexpr int64_t kMostNs = int64_t{1} << 60;
// The year 2116.
inline constexpr int64_t kMostWallNs = int64_t{1} << 62;

constexpr bool IsPossibleTime(int64_t t_ns) { return -kMostNs <= t_ns && t_ns <= kMostNs; }

// A number as a whole one; nothing for a number that none can hold, NaN included.
constexpr std::optional<int64_t> WholeOf(double number) {
  if (!(number > -9.2e18 && number < 9.2e18)) return {};
  return static_cast<int64_t>(number);
}

// Whether every time of the record is possible.
bool HasPossibleTimes(const Record& record);

}  // namespace epochmeter::model
