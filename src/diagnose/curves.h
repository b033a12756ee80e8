// SPDX-License-Identifier: Apache-2.0
// Thinned series of a run, for pictures and rules.
#pragma once

#include <vector>

#include "diagnose/figures.h"
#include "model/curve.h"

namespace epochmeter::diagnose {

// Thins `column`, whose times do not fall, into `curve`. `span` is cut into model::kCurveBuckets
// equal parts of at least one ns; samples outside it are left out. Sums weigh a sample as
// model::SampleWeightSeconds says, and a hole is where it weighs less than its distance.
void FillCurve(const model::SeriesColumn& column, model::Interval span, model::Curve* curve);

// The curve of a series out of its samples; a counter becomes a rate, nothing where it was reset.
model::Curve CurveOf(const model::SeriesDef& series, const model::SeriesColumn& column,
                     model::Interval span);

// The same figure's name as a rate: "read_bytes" -> "read_bytes_per_s"; what counts seconds is a
// ratio or a number of cores: "throttle_thermal_s" -> "throttle_thermal_ratio", "cpu_user_s" ->
// "cpu_user_cores".
std::string RateField(std::string_view counter_field);

// Those that `reader` did not read yet, and figures that are worked out of several series:
// host cpu_ratio, iowait_ratio, memory_used_bytes, swap_used_bytes.
void AddCurves(const SeriesReader& reader, std::vector<model::Curve>* curves);

}  // namespace epochmeter::diagnose
