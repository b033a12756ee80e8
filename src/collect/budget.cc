// SPDX-License-Identifier: Apache-2.0
#include "collect/budget.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace epochmeter::collect {

namespace {

constexpr size_t kCostWindow = 8;
// Of its period, for one reading of a vital source.
constexpr double kVitalRatio = 0.01;
// Of a limit, at most, for vital sources: at a short interval they would leave nothing to others.
constexpr double kMostForVital = 0.5;
// Of a limit: what takes less is left alone, since nothing is gained by it.
constexpr double kLeastShare = 0.005;
constexpr std::array<int64_t, 13> kStepsMs = {
    100, 200, 500, 1000, 2000, 5000, 10000, 20'000, 30'000, 60'000, 120000, 300'000, 600'000};

int64_t Longer(int64_t period_ns) {
  for (const int64_t step_ms : kStepsMs) {
    if (step_ms * base::kNsPerMs > period_ns) return step_ms * base::kNsPerMs;
  }
  return 2 * period_ns;
}

// Nothing is gained by going beyond.
int64_t Longest(const Demand& demand) {
  if (demand.vital) return std::max(demand.base_ns, 60 * base::kNsPerSecond);
  return std::max(demand.base_ns, demand.longest_ns);
}

// The next period; kOff after the last one of a source that is of no use when slower.
int64_t Next(const Demand& demand, int64_t period_ns) {
  if (!demand.vital && demand.longest_ns == 0) return kOff;
  return std::min(Longer(period_ns), Longest(demand));
}

double Share(int64_t cost_ns, int64_t period_ns, double limit) {
  if (period_ns == kOff || std::isinf(limit)) return 0;
  return static_cast<double>(cost_ns) / static_cast<double>(period_ns) / limit;
}

// Of the limit that is passed: what a source takes of it.
struct Load {
  double cpu = 0, driver = 0;
};
Load LoadOf(const Demand& demand, int64_t period_ns, const BudgetLimits& limits) {
  return {.cpu = Share(demand.cost.cpu_ns, period_ns, limits.cpu_ratio),
          .driver = Share(demand.cost.driver_ns, period_ns, limits.driver_ratio)};
}

int64_t VitalPeriod(const Demand& demand, const BudgetLimits& limits) {
  int64_t period_ns = demand.base_ns;
  if (std::isinf(limits.cpu_ratio)) return period_ns;
  const auto cost_ns = static_cast<double>(std::max(demand.cost.cpu_ns, demand.cost.driver_ns));
  while (cost_ns > kVitalRatio * static_cast<double>(period_ns) && period_ns < Longest(demand)) {
    period_ns = Next(demand, period_ns);
  }
  return period_ns;
}

}  // namespace

int64_t TimeForNs(const ReadingCost& cost, const BudgetLimits& limits) {
  const double cpu_ns = static_cast<double>(cost.cpu_ns) / limits.cpu_ratio;
  const double driver_ns = static_cast<double>(cost.driver_ns) / limits.driver_ratio;
  return static_cast<int64_t>(std::max(cpu_ns, driver_ns));
}

std::vector<int64_t> PlanPeriods(std::span<const Demand> demands, const BudgetLimits& limits) {
  std::vector<int64_t> periods_ns;
  for (const Demand& demand : demands) {
    periods_ns.push_back(demand.vital ? VitalPeriod(demand, limits) : demand.base_ns);
  }
  for (;;) {
    Load sum, vital;
    for (size_t i = 0; i < demands.size(); ++i) {
      const Load load = LoadOf(demands[i], periods_ns[i], limits);
      Load& part = demands[i].vital ? vital : sum;
      part.cpu += load.cpu;
      part.driver += load.driver;
    }
    sum.cpu += std::min(vital.cpu, kMostForVital);
    sum.driver += std::min(vital.driver, kMostForVital);
    if (sum.cpu <= 1 && sum.driver <= 1) return periods_ns;
    std::optional<size_t> dearest;
    double most = kLeastShare;
    for (size_t i = 0; i < demands.size(); ++i) {
      const bool fixed = demands[i].vital || periods_ns[i] == kOff ||
                         Next(demands[i], periods_ns[i]) == periods_ns[i];
      const Load load = LoadOf(demands[i], periods_ns[i], limits);
      const double taken =
          ((sum.cpu > 1 ? load.cpu : 0) + (sum.driver > 1 ? load.driver : 0)) / demands[i].worth;
      if (fixed || taken <= most) continue;
      most = taken;
      dearest = i;
    }
    if (!dearest) return periods_ns;
    periods_ns[*dearest] = Next(demands[*dearest], periods_ns[*dearest]);
  }
}

double CpuRatioOf(std::span<const Demand> demands, std::span<const int64_t> periods_ns) {
  double ratio = 0;
  for (size_t i = 0; i < demands.size(); ++i) {
    ratio += Share(demands[i].cost.cpu_ns, periods_ns[i], 1);
  }
  return ratio;
}

void CostMeter::Add(const ReadingCost& cost, size_t parts, size_t of_parts) {
  if (parts >= of_parts) {
    if (whole_.size() == kCostWindow) whole_.erase(whole_.begin());
    whole_.push_back(cost);
    return;
  }
  sum_.cpu_ns += cost.cpu_ns;
  sum_.driver_ns += cost.driver_ns;
  parts_ += parts;
  if (parts_ < of_parts) return;
  parts_ = 0;
  Add(std::exchange(sum_, {}), of_parts, of_parts);
}

std::optional<ReadingCost> CostMeter::Usual() const {
  if (whole_.empty()) return std::nullopt;
  const auto middle = [this](int64_t ReadingCost::*member) {
    std::vector<int64_t> sorted;
    for (const ReadingCost& cost : whole_) sorted.push_back(cost.*member);
    std::sort(sorted.begin(), sorted.end());
    return sorted[(sorted.size() - 1) / 2];
  };
  return ReadingCost{.cpu_ns = middle(&ReadingCost::cpu_ns),
                     .driver_ns = middle(&ReadingCost::driver_ns)};
}

bool EpochCredit::Allows(bool vital, int64_t now_ns) {
  credit_ns_ = std::min(kMostNs, credit_ns_ + (now_ns - at_ns_) / 2);
  at_ns_ = now_ns;
  return credit_ns_ > (vital ? -kMostNs : 0);
}

void EpochCredit::Spend(int64_t time_ns) {
  credit_ns_ -= time_ns;
  spent_ns_ += time_ns;
}

double EpochCredit::TakeSpentRatio(int64_t now_ns) {
  const int64_t elapsed_ns = std::max<int64_t>(1, now_ns - std::exchange(window_ns_, now_ns));
  const auto spent_ns = static_cast<double>(std::exchange(spent_ns_, 0));
  return std::min(0.5, spent_ns / static_cast<double>(elapsed_ns));
}

}  // namespace epochmeter::collect
