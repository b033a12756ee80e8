// SPDX-License-Identifier: Apache-2.0
// Figures of series and of plain value lists over an interval. Pure functions, any thread.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "model/report.h"
#include "model/run.h"

namespace epochmeter::diagnose {

// Quantile `q` (0..1) of values in rising order, by linear interpolation between the two nearest
// ranks: position q * (n - 1). Nothing of nothing.
std::optional<double> Percentile(std::span<const double> sorted, double q);

// Figures of the samples inside `interval`. The mean is time-weighted as model::Summary defines
// it; percentiles count each sample once. `coverage_ratio` needs a period and a length.
model::Stat StatOf(const model::SeriesColumn& column, int64_t period_ns, model::Interval interval);

// Figures of values without times (step durations); NaN stands for absent and is left out.
model::Stat StatOfValues(std::span<const double> values);

// How far apart two samples of a counter may be for its value between them to be interpolated:
// five periods and at least 1 s; at least 60 s for counters that are read rarely (a period of 2 s
// or more, or none).
int64_t BracketLimitNs(int64_t period_ns);

// What a counter grew by inside `interval`, whose ends are linearly interpolated between the
// samples that bracket them. Nothing when an end has no bracket within BracketLimitNs.
//
// A fall to less than half is a restart from zero: what came before it is kept, and the new value
// counts as growth. Across a hole longer than the limit what the restart ate is not known: nothing.
// A smaller fall is jitter of the source (Linux lets iowait fall) and adds nothing.
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
