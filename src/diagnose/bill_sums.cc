// SPDX-License-Identifier: Apache-2.0
#include "diagnose/bill_sums.h"

#include <algorithm>
#include <cmath>

namespace epochmeter::diagnose {
namespace {

using model::BillLine;
using model::TimeUse;

constexpr double kNsPerHour = 3.6e12;
constexpr double kJoulesPerKwh = 3.6e6;
// The least of productive time that must be sampled for its activity to stand for all of it.
constexpr double kLeastSampled = 0.5;

double HourPrice(const model::GpuPrice& price, TimeUse use) {
  if (use == TimeUse::kEvaluation) return price.evaluation_gpu_hour.value_or(price.gpu_hour);
  if (use == TimeUse::kIdle || use == TimeUse::kUnused) {
    return price.idle_gpu_hour.value_or(price.gpu_hour);
  }
  return price.gpu_hour;
}

double Ratio(double part_ns, int64_t ns) {
  return ns <= 0 ? 0 : std::clamp(part_ns / static_cast<double>(ns), 0.0, 1.0);
}

}  // namespace

Measured Measured::Share(size_t index, size_t count) const {
  if (count <= 1) return *this;
  Measured share = *this;
  const auto parts = static_cast<int64_t>(count);
  const auto place = static_cast<int64_t>(index);
  // The first ones get the ns that don't divide.
  const auto part = [&](int64_t whole) {
    return whole / parts + static_cast<int64_t>(place < whole % parts);
  };
  share.throttled_ns = part(throttled_ns);
  share.ns = part(ns - throttled_ns) + share.throttled_ns;
  for (double* value : {&share.counter_j, &share.counter_ns, &share.integral_j, &share.integral_ns,
                        &share.active_s, &share.activity_ns}) {
    *value /= static_cast<double>(count);
  }
  return share;
}

void LineSums::Add(const Measured& part) {
  AddUse(part.use, part.ns - part.throttled_ns, part);
  if (part.throttled_ns > 0) AddUse(TimeUse::kThrottle, part.throttled_ns, part);
  line.total_ns += part.ns;
  counter_j_ += part.counter_j;
  counter_ns_ += part.counter_ns;
  integral_j_ += part.integral_j;
  integral_ns_ += part.integral_ns;
  energy_j_ += part.by_counter ? part.counter_j : part.integral_j;
  energy_ns_ += part.by_counter ? part.counter_ns : part.integral_ns;
  active_s_ += part.active_s;
  activity_ns_ += part.activity_ns;
}

void LineSums::AddUse(TimeUse use, int64_t ns, const Measured& part) {
  model::UseFigures& figures = line.uses[static_cast<size_t>(use)];
  figures.ns += ns;
  if (part.ns <= 0) return;
  const double share = static_cast<double>(ns) / static_cast<double>(part.ns);
  figures.energy_j += share * (part.by_counter ? part.counter_j : part.integral_j);
  if (part.price == nullptr) return;
  const double cost = static_cast<double>(ns) / kNsPerHour * HourPrice(*part.price, use);
  figures.cost += cost;
  cost_ += cost;
  priced_ns_ += static_cast<double>(ns);
}

BillLine LineSums::Finish(const model::Rates& rates) const {
  BillLine done = line;
  const int64_t productive_ns = done.Of(TimeUse::kProductive).ns;
  const int64_t sampled_of_ns = productive_ns + done.Of(TimeUse::kThrottle).ns;
  if (sampled_of_ns > 0) done.activity_coverage_ratio = Ratio(activity_ns_, sampled_of_ns);
  if (activity_ns_ > 0 && done.activity_coverage_ratio.value_or(0) >= kLeastSampled) {
    done.activity_ratio = active_s_ * 1e9 / activity_ns_;
    done.effective_ns =
        std::llround(static_cast<double>(productive_ns) * std::clamp(*done.activity_ratio, 0., 1.));
  }
  if (counter_ns_ > 0) done.counter_j = counter_j_;
  if (integral_ns_ > 0) done.integral_j = integral_j_;
  if (energy_ns_ > 0) done.energy_j = energy_j_;
  done.counter_coverage_ratio = Ratio(counter_ns_, done.total_ns);
  done.integral_coverage_ratio = Ratio(integral_ns_, done.total_ns);
  done.energy_coverage_ratio = Ratio(energy_ns_, done.total_ns);
  done.cost_coverage_ratio = Ratio(priced_ns_, done.total_ns);
  if (priced_ns_ > 0) done.cost = cost_;
  if (!done.energy_j) return done;
  const double kwh = *done.energy_j / kJoulesPerKwh * rates.pue;
  if (rates.electricity_kwh) done.electricity_cost = kwh * *rates.electricity_kwh;
  if (rates.carbon_g_per_kwh) done.carbon_g = kwh * *rates.carbon_g_per_kwh;
  return done;
}

}  // namespace epochmeter::diagnose
