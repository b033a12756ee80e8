// SPDX-License-Identifier: Apache-2.0
// How often sources are read, so that all of them together keep within a share of one core and of
// the time for which a driver's lock is held. Pure functions and values; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"

namespace epochmeter::collect {

// Parts of the time; infinity where there is no limit.
struct BudgetLimits {
  double cpu_ratio = std::numeric_limits<double>::infinity();     // computing
  double driver_ratio = std::numeric_limits<double>::infinity();  // inside calls of a driver
};

// What one reading takes.
struct ReadingCost {
  int64_t cpu_ns = 0;
  int64_t driver_ns = 0;  // wall time; 0 for sources that hold no driver's lock
};

// The time within which the limits allow so much.
int64_t TimeForNs(const ReadingCost& cost, const BudgetLimits& limits);

struct Demand {
  int64_t base_ns = 0;     // the period that it would have
  int64_t longest_ns = 0;  // beyond which it is of no use; 0: it is of none when slower than base
  bool vital = false;      // keeps its base while one reading takes at most 1 % of it
  double worth = 1;        // of what it takes, against others
  ReadingCost cost;
};

inline constexpr int64_t kOff = std::numeric_limits<int64_t>::max();

// The period of each. While the sum is over a limit, the one that takes most of it for its worth
// gets the next longer period (1, 2, 5, 10, 20, 30, 60 ... s); vital ones count for half of it at
// most, and are left alone. The sum may stay over. kOff: not read at all.
std::vector<int64_t> PlanPeriods(std::span<const Demand> demands, const BudgetLimits& limits);
// Of all sources, read in these periods.
double CpuRatioOf(std::span<const Demand> demands, std::span<const int64_t> periods_ns);

// What a source's readings usually cost: the median of the last 8 whole ones, the lower one of two.
// A reading of some of the parts counts once all parts were read.
class CostMeter {
 public:
  // `parts` were read of `of_parts`, both at least 1.
  void Add(const ReadingCost& cost, size_t parts, size_t of_parts);
  // Nothing before the first whole reading.
  std::optional<ReadingCost> Usual() const;

 private:
  std::vector<ReadingCost> whole_;
  ReadingCost sum_;
  size_t parts_ = 0;
};

// Time saved up for readings that come when they come, at the ends of epochs: half of the limits,
// up to a minute's. What was spent is what plans leave out.
class EpochCredit {
 public:
  explicit EpochCredit(int64_t now_ns) : at_ns_(now_ns), window_ns_(now_ns) {}
  // Whether a source may be read at `now_ns`: vital ones longer than others.
  bool Allows(bool vital, int64_t now_ns);
  // `time_ns` as TimeForNs gives it.
  void Spend(int64_t time_ns);
  // The part of the limits that was spent since the last call, at most a half.
  double TakeSpentRatio(int64_t now_ns);

 private:
  static constexpr int64_t kMostNs = 60 * base::kNsPerSecond;
  int64_t at_ns_;
  int64_t credit_ns_ = kMostNs;
  int64_t window_ns_;
  int64_t spent_ns_ = 0;
};

}  // namespace epochmeter::collect
