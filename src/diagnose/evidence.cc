// SPDX-License-Identifier: Apache-2.0
#include "diagnose/evidence.h"

#include <utility>

namespace epochmeter::diagnose {

void PutKnown(const char* name, const std::optional<double>& value, model::ScalarTable* values) {
  if (value) values->emplace_back(name, *value);
}

model::Evidence BusyEvidence(std::string series, std::span<const model::Interval> judged,
                             double utilization_ratio) {
  return {.series = std::move(series),
          .interval = {.begin_ns = judged.front().begin_ns, .end_ns = judged.back().end_ns},
          .values = {{"utilization_ratio", utilization_ratio}},
          .note = {},
          .steps = {}};
}

}  // namespace epochmeter::diagnose
