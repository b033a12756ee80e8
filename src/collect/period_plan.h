// SPDX-License-Identifier: Apache-2.0
// When the sources of one process get other periods, and which: its part of the budget, less what
// the process does beside reading them and what the ends of epochs took.
#pragma once

#include <span>
#include <vector>

#include "collect/budget.h"
#include "model/env.h"

namespace epochmeter::collect {

class PeriodPlan {
 public:
  // Keeps `env`. `nvml` says that the sources hold a driver's lock. With an infinite `cpu_ratio`
  // there is no budget.
  PeriodPlan(const model::Env& env, double cpu_ratio, bool nvml, int64_t tick_ns);

  bool Due(int64_t now_ns) const { return now_ns >= next_ns_; }
  int64_t NextNs() const { return next_ns_; }
  // The period of each source from now on. `now_periods_ns` are those in force: a shorter one comes
  // only when a plan for three quarters of the budget has room for it.
  std::vector<int64_t> Make(int64_t now_ns, std::span<const Demand> demands,
                            std::span<const int64_t> now_periods_ns);
  // Of the last plan: what its sources take of a core, and what they may take.
  double cpu_ratio() const { return cpu_ratio_; }
  double limit_ratio() const { return limit_ratio_; }

  // Told of each reading, so that what the process does beside them is known.
  void NoteRead(const ReadingCost& cost) { read_cpu_ns_ += cost.cpu_ns; }
  // Whether a source may be read at the end of an epoch, and what that took.
  bool AllowsAtEpoch(bool vital, int64_t now_ns) { return credit_.Allows(vital, now_ns); }
  void NoteReadAtEpoch(const ReadingCost& cost) { credit_.Spend(TimeForNs(cost, limits_)); }

 private:
  double OverheadRatio(int64_t now_ns);

  const model::Env& env_;
  BudgetLimits limits_;
  EpochCredit credit_;
  int64_t next_ns_;
  int64_t window_ns_ = 0;  // since when overhead counts; 0: not yet
  int64_t process_cpu_ns_ = 0;
  int64_t read_cpu_ns_ = 0;
  double cpu_ratio_ = 0;
  double limit_ratio_ = 0;
};

}  // namespace epochmeter::collect
