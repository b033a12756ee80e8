// SPDX-License-Identifier: Apache-2.0
// Patterns that find the values of a log, for tools that want to be told: learned from its records.
#pragma once

#include <string>
#include <vector>

#include "model/log_report.h"

namespace epochmeter::exporting {

struct LogPattern {
  std::string name;    // "loss", "epoch"; of ours where the value has a known meaning
  std::string key;     // as printed; empty where no name stands before the number
  std::string before;  // what stands before the number, as a pattern; never empty
  // Between it and the number of the pattern before, whose text `before` has, too: the "/" of
  // "3/10". Empty where the pattern stands for itself.
  std::string between;
};

// Of one kind of record, in the order of the line: what can be told by the text before it.
std::vector<LogPattern> PatternsOf(const model::LogShape& shape);

// JSON: SageMaker's MetricDefinitions (at most 500 characters each), Katib's filter, and for each
// kind of record one Python pattern with named groups.
std::string LogPatterns(const model::LogReport& report);

}  // namespace epochmeter::exporting
