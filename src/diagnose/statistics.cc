// SPDX-License-Identifier: Apache-2.0
#include "diagnose/statistics.h"

#include <algorithm>
#include <cmath>

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

void SetPercentiles(std::vector<double> values, Stat* stat) {
  std::sort(values.begin(), values.end());
  stat->p50 = Percentile(values, 0.5);
  stat->p95 = Percentile(values, 0.95);
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

Stat StatOf(const SeriesColumn& column, int64_t period_ns, Interval interval) {
  const size_t from = LowerIndex(column, interval.begin_ns);
  const size_t to = UpperIndex(column, interval.end_ns);
  if (from >= to) return {};
  model::Summary summary;
  for (size_t i = from; i < to; ++i) {
    const double weight =
        i == 0 ? 0 : model::SampleWeightSeconds(column.t_ns[i - 1], column.t_ns[i], period_ns);
    summary.Add(column.t_ns[i], column.value[i], weight);
  }
  Stat stat;
  stat.count = summary.count;
  stat.mean = summary.Mean();
  stat.min = summary.min;
  stat.max = summary.max;
  stat.last = summary.last;
  const double length_s = base::SecondsFromNs(interval.end_ns - interval.begin_ns);
  if (period_ns > 0 && length_s > 0) {
    stat.coverage_ratio = std::min(1.0, summary.weight_s / length_s);
  }
  SetPercentiles({column.value.begin() + static_cast<std::ptrdiff_t>(from),
                  column.value.begin() + static_cast<std::ptrdiff_t>(to)},
                 &stat);
  return stat;
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
