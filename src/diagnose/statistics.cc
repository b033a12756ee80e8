// SPDX-License-Identifier: Apache-2.0
#include "diagnose/statistics.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace epochmeter::diagnose {
namespace {

using model::Interval;
using model::SeriesColumn;
using model::Stat;

constexpr int64_t kRarePeriodNs = 2 * base::kNsPerSecond;

// First index at or after `t_ns`.
size_t LowerIndex(const SeriesColumn& column, int64_t t_ns) {
  return static_cast<size_t>(std::lower_bound(column.t_ns.begin(), column.t_ns.end(), t_ns) -
                             column.t_ns.begin());
}

size_t UpperIndex(const SeriesColumn& column, int64_t t_ns) {
  return static_cast<size_t>(std::upper_bound(column.t_ns.begin(), column.t_ns.end(), t_ns) -
                             column.t_ns.begin());
}

// Percentile() of values that need not be sorted, from `begin` on, where no value behind is less
// than one before it; puts them in order as far as needed and gives the place that it came to.
size_t PartialPercentile(size_t begin, double q, std::vector<double>* values, double* result) {
  const auto at = [&](size_t index) {
    return values->begin() + static_cast<std::ptrdiff_t>(index);
  };
  const double position = q * static_cast<double>(values->size() - 1);
  const auto below = static_cast<size_t>(position);
  std::nth_element(at(begin), at(below), values->end());
  *result = (*values)[below];
  if (below + 1 >= values->size()) return below;
  const double next = *std::min_element(at(below + 1), values->end());
  *result += (position - static_cast<double>(below)) * (next - *result);
  return below;
}

void SetPercentiles(std::vector<double> values, Stat* stat) {
  if (values.empty()) return;
  double p50 = 0, p95 = 0;
  const size_t middle = PartialPercentile(0, 0.5, &values, &p50);
  PartialPercentile(middle, 0.95, &values, &p95);
  stat->p50 = p50;
  stat->p95 = p95;
}

// What a counter grew by; the least it can be where it was reset.
struct Grown {
  double value = 0;
  bool reset = false;
};

// Growth from one sample to the next.
Grown Growth(const SeriesColumn& column, size_t from, Falls falls) {
  const double before = column.value[from];
  const double after = column.value[from + 1];
  if (after >= before) return {.value = after - before};
  // After a small fall most of the new value may be old: a source may have lost a part of its sum.
  if (after >= before / 2) return {.value = 0, .reset = falls == Falls::kReset};
  return {.value = after, .reset = true};
}

// Growth from sample `from` to the instant `t_ns`, which lies at it or between it and the next.
std::optional<Grown> GrowthUntil(const SeriesColumn& column, size_t from, int64_t t_ns,
                                 int64_t limit_ns, Falls falls) {
  if (column.t_ns[from] == t_ns) return Grown();
  if (from + 1 >= column.t_ns.size()) return {};
  const int64_t distance = column.t_ns[from + 1] - column.t_ns[from];
  if (distance > limit_ns) return {};
  const Grown grown = Growth(column, from, falls);
  if (grown.reset) return Grown{.value = 0, .reset = true};  // nobody knows when it came
  const auto part = static_cast<double>(t_ns - column.t_ns[from]);
  return Grown{.value = grown.value * part / static_cast<double>(distance)};
}

}  // namespace

std::optional<double> Percentile(std::span<const double> sorted, double q) {
  if (sorted.empty()) return {};
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  if (below + 1 >= sorted.size()) return sorted.back();
  const double part = position - static_cast<double>(below);
  return sorted[below] + part * (sorted[below + 1] - sorted[below]);
}

std::optional<double> UnsortedMedian(std::vector<double> values) {
  if (values.empty()) return {};
  double median = 0;
  PartialPercentile(0, 0.5, &values, &median);
  return median;
}

Stat IntervalStats::Of(Interval interval) {
  const size_t from = LowerIndex(column_, interval.begin_ns);
  const size_t to = UpperIndex(column_, interval.end_ns);
  if (from >= to) return {};
  const auto [known, is_new] = known_.try_emplace({from, to});
  if (is_new) known->second = Work(from, to);
  Stat stat = known->second.stat;
  const double length_s = base::SecondsFromNs(interval.end_ns - interval.begin_ns);
  if (period_ns_ > 0 && length_s > 0) {
    stat.coverage_ratio = std::min(1.0, known->second.weight_s / length_s);
  }
  return stat;
}

IntervalStats::Known IntervalStats::Work(size_t from, size_t to) const {
  model::Summary summary;
  for (size_t i = from; i < to; ++i) {
    const double weight =
        i == 0 ? 0 : model::SampleWeightSeconds(column_.t_ns[i - 1], column_.t_ns[i], period_ns_);
    summary.Add(column_.t_ns[i], column_.value[i], weight);
  }
  Known known{.weight_s = summary.weight_s};
  known.stat.count = summary.count;
  known.stat.mean = summary.Mean();
  known.stat.min = summary.min;
  known.stat.max = summary.max;
  known.stat.last = summary.last;
  std::vector<double> values;
  values.reserve(to - from);
  std::copy_if(column_.value.begin() + static_cast<std::ptrdiff_t>(from),
               column_.value.begin() + static_cast<std::ptrdiff_t>(to), std::back_inserter(values),
               [](double value) { return !std::isnan(value); });
  SetPercentiles(std::move(values), &known.stat);
  return known;
}

Stat StatOf(const SeriesColumn& column, int64_t period_ns, Interval interval) {
  return IntervalStats(column, period_ns).Of(interval);
}

Stat StatOfValues(std::span<const double> values) {
  std::vector<double> known;
  known.reserve(values.size());
  double sum = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    known.push_back(value);
    sum += value;
  }
  if (known.empty()) return {};
  Stat stat;
  stat.count = known.size();
  stat.mean = sum / static_cast<double>(known.size());
  stat.last = known.back();
  const auto [min, max] = std::minmax_element(known.begin(), known.end());
  stat.min = *min;
  stat.max = *max;
  SetPercentiles(std::move(known), &stat);
  return stat;
}

int64_t BracketLimitNs(int64_t period_ns) {
  const bool rare = period_ns <= 0 || period_ns >= kRarePeriodNs;
  return std::max(5 * period_ns, rare ? 60 * base::kNsPerSecond : base::kNsPerSecond);
}

std::optional<CounterGrowth> GrowthOf(const SeriesColumn& column, int64_t period_ns,
                                      Interval interval, Falls falls) {
  const int64_t limit_ns = BracketLimitNs(period_ns);
  const size_t after_begin = UpperIndex(column, interval.begin_ns);
  const size_t after_end = UpperIndex(column, interval.end_ns);
  if (after_begin == 0 || after_end == 0 || interval.end_ns < interval.begin_ns) return {};
  const size_t first = after_begin - 1;  // the last sample at or before each end
  const size_t last = after_end - 1;
  const auto head = GrowthUntil(column, first, interval.begin_ns, limit_ns, falls);
  const auto tail = GrowthUntil(column, last, interval.end_ns, limit_ns, falls);
  if (!head || !tail) return {};
  CounterGrowth total{.value = tail->value - head->value, .at_least = head->reset || tail->reset};
  for (size_t i = first; i < last; ++i) {
    if (i == first && head->reset) continue;
    const Grown grown = Growth(column, i, falls);
    total.value += grown.value;
    total.at_least |= grown.reset;
  }
  total.value = std::max(0.0, total.value);
  return total;
}

std::optional<double> CounterDelta(const SeriesColumn& column, int64_t period_ns,
                                   Interval interval) {
  const auto growth = GrowthOf(column, period_ns, interval, Falls::kJitter);
  if (!growth || growth->at_least) return {};
  return growth->value;
}

std::optional<Interval> CountedPart(const SeriesColumn& column, int64_t period_ns,
                                    Interval interval) {
  const size_t from = LowerIndex(column, interval.begin_ns);
  const size_t to = UpperIndex(column, interval.end_ns);
  const auto bracketed = [&](int64_t t_ns) {
    return CounterDelta(column, period_ns, {.begin_ns = t_ns, .end_ns = t_ns}).has_value();
  };
  Interval part = interval;
  if (!bracketed(interval.begin_ns)) {
    if (from >= to) return {};
    part.begin_ns = column.t_ns[from];
  }
  if (!bracketed(interval.end_ns)) {
    if (from >= to) return {};
    part.end_ns = column.t_ns[to - 1];
  }
  const int64_t length_ns = part.end_ns - part.begin_ns;
  if (length_ns <= 0) return {};
  const bool enough = to >= from + 2 || 2 * length_ns >= interval.end_ns - interval.begin_ns;
  return enough ? std::optional(part) : std::nullopt;
}

std::optional<Interval> SampledPart(const SeriesColumn& column, Interval interval) {
  const size_t from = LowerIndex(column, interval.begin_ns);
  const size_t to = UpperIndex(column, interval.end_ns);
  if (to < from + 2) return {};
  return Interval{.begin_ns = column.t_ns[from], .end_ns = column.t_ns[to - 1]};
}

}  // namespace epochmeter::diagnose
