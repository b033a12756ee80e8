// SPDX-License-Identifier: Apache-2.0
// Pieces of evidence that several rules make alike. Pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "model/finding.h"

namespace epochmeter::diagnose {

// Adds a figure that is known.
void PutKnown(const char* name, const std::optional<double>& value, model::ScalarTable* values);

// Over all of `judged` (not empty), with how busy the GPUs were in it.
model::Evidence BusyEvidence(std::string series, std::span<const model::Interval> judged,
                             double utilization_ratio);

}  // namespace epochmeter::diagnose
