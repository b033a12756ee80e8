// SPDX-License-Identifier: Apache-2.0
// Figures of series and of plain value lists over an interval. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/report.h"
#include "model/run.h"

namespace epochmeter::diagnose {

// Quantile `q` (0..1) of values in rising order, by linear interpolation between the two nearest
// ranks: position q * (n - 1). Nothing of nothing.
std::optional<double> Percentile(std::span<const double> sorted, double q);
// Percentile() at the middle, of values in any order and without NaN; does not sort them all.
std::optional<double> UnsortedMedian(std::vector<double> values);

// Figures of the samples inside `interval`. The mean is time-weighted as model::Summary defines
// it; percentiles count each sample once. `coverage_ratio` needs a period and a length.
model::Stat StatOf(const model::SeriesColumn& column, int64_t period_ns, model::Interval interval);

// The same for many intervals of one column: those with the same samples in them, as the epochs of
// ranks that go in step have, are worked out once. Borrows the column. One thread.
class IntervalStats {
 public:
  IntervalStats(const model::SeriesColumn& column, int64_t period_ns)
      : column_(column), period_ns_(period_ns) {}
  model::Stat Of(model::Interval interval);

 private:
  struct Known {
    model::Stat stat;  // without coverage_ratio
    double weight_s = 0;
  };
  Known Work(size_t from, size_t to) const;
  const model::SeriesColumn& column_;
  int64_t period_ns_;
  std::map<std::pair<size_t, size_t>, Known> known_;  // by the range of samples
};

// Figures of values without times (step durations); NaN stands for absent and is left out.
model::Stat StatOfValues(std::span<const double> values);

// How far apart two samples of a counter may be for its value between them to be interpolated:
// five periods and at least 1 s; at least 60 s for counters that are read rarely (a period of 2 s
// or more, or none).
int64_t BracketLimitNs(int64_t period_ns);

// What a fall of a counter means. Some of the kernel's CPU times fall a little now and then
// (iowait): there a fall to no less than half is jitter and adds nothing. For all others, and below
// half, the counter was reset.
enum class Falls : uint8_t { kJitter, kReset };

// What a counter grew by. After a reset only the least is known: what came before it, and the new
// value where it is below half of the old; what came between the last reading and the reset is not
// in it.
struct CounterGrowth {
  double value = 0;
  bool at_least = false;
};

// Growth inside `interval`, whose ends are linearly interpolated between the samples that bracket
// them. Nothing when an end has no bracket within BracketLimitNs.
std::optional<CounterGrowth> GrowthOf(const model::SeriesColumn& column, int64_t period_ns,
                                      model::Interval interval, Falls falls);

// The same of a CPU time, and nothing when it is not known in full.
std::optional<double> CounterDelta(const model::SeriesColumn& column, int64_t period_ns,
                                   model::Interval interval);

// The part of `interval` in which CounterDelta is known but for holes: each end stays where it is
// bracketed, else moves in to the first or last sample inside. Nothing when less than half of the
// interval is left and not even two samples are inside.
std::optional<model::Interval> CountedPart(const model::SeriesColumn& column, int64_t period_ns,
                                           model::Interval interval);

// `interval` shortened to where the column has samples; nothing without two of them inside.
std::optional<model::Interval> SampledPart(const model::SeriesColumn& column,
                                           model::Interval interval);

}  // namespace epochmeter::diagnose
