// SPDX-License-Identifier: Apache-2.0
#include "collect/period_plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace epochmeter::collect {

namespace {

constexpr int64_t kFirstPlanNs = 3 * base::kNsPerSecond;
constexpr int kFirstPlanTicks = 3;
constexpr int64_t kPlanNs = 10 * base::kNsPerSecond;
constexpr double kDriverRatio = 0.01;
constexpr double kRoomToRestore = 0.75;
// Of the budget, however much the process does beside.
constexpr double kLeastForSources = 0.5;

BudgetLimits Scaled(BudgetLimits limits, double factor) {
  return {.cpu_ratio = limits.cpu_ratio * factor, .driver_ratio = limits.driver_ratio * factor};
}

}  // namespace

PeriodPlan::PeriodPlan(const model::Env& env, double cpu_ratio, bool nvml, int64_t tick_ns)
    : env_(env), credit_(env.monotonic_ns()) {
  limits_.cpu_ratio = cpu_ratio;
  const bool limited = !std::isinf(cpu_ratio);
  if (limited && nvml) limits_.driver_ratio = kDriverRatio;
  next_ns_ = limited ? env.monotonic_ns() + std::max(kFirstPlanNs, kFirstPlanTicks * tick_ns)
                     : std::numeric_limits<int64_t>::max();
}

// Starting costs more than going on does, and is over: the first window begins at the first plan.
double PeriodPlan::OverheadRatio(int64_t now_ns) {
  const int64_t process_ns = env_.process_cpu_ns();
  const int64_t beside_ns =
      process_ns - std::exchange(process_cpu_ns_, process_ns) - std::exchange(read_cpu_ns_, 0);
  const int64_t begin_ns = std::exchange(window_ns_, now_ns);
  if (begin_ns == 0 || now_ns <= begin_ns) return 0;
  return std::max(0.0, static_cast<double>(beside_ns) / static_cast<double>(now_ns - begin_ns));
}

std::vector<int64_t> PeriodPlan::Make(int64_t now_ns, std::span<const Demand> demands,
                                      std::span<const int64_t> now_periods_ns) {
  next_ns_ = now_ns + kPlanNs;
  const double for_sources =
      std::max(kLeastForSources, 1 - OverheadRatio(now_ns) / limits_.cpu_ratio);
  const double factor = for_sources * (1 - credit_.TakeSpentRatio(now_ns));
  std::vector<int64_t> periods_ns = PlanPeriods(demands, Scaled(limits_, factor));
  const std::vector<int64_t> roomy = PlanPeriods(demands, Scaled(limits_, factor * kRoomToRestore));
  for (size_t i = 0; i < periods_ns.size(); ++i) {
    if (periods_ns[i] >= now_periods_ns[i]) continue;
    periods_ns[i] = std::min(now_periods_ns[i], roomy[i]);
  }
  cpu_ratio_ = CpuRatioOf(demands, periods_ns);
  limit_ratio_ = limits_.cpu_ratio * factor;
  return periods_ns;
}

}  // namespace epochmeter::collect
