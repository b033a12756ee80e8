// SPDX-License-Identifier: Apache-2.0
// What rules say of a run: what is wrong, what it rests on, what to change.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/message.h"
#include "model/run.h"

namespace epochmeter::model {

// Names with their units, and figures, in the order to print.
using ScalarTable = std::vector<std::pair<std::string, double>>;

enum class Severity : uint8_t { kInfo, kWarning, kCritical, kNotApplicable };
std::string_view SeverityName(Severity severity);  // "warning"

// What a finding rests on: figures of one series over an interval, or of steps.
struct Evidence {
  std::string
      series;  // as in curves: "gpu0 memory_used_bytes", "rank1 duration_s", "host cpu_ratio"
  Interval interval;
  ScalarTable values;  // with units in their names: {"first_bytes", 1e9}, {"p50_s", 0.02}
  Message note;        // what these values show; may be empty
  // Steps that it speaks of (numbers as the training counts them); empty when it speaks of time.
  std::vector<int64_t> steps;
};

// One thing to change. `framework` is "paddle", "tensorflow" or "pytorch", empty when it is the
// same for all; `code` is what to type, in no human language, or empty.
struct Advice {
  std::string framework;
  Message text;
  std::string code;
};

// What a rule says of a run. Ranks and GPUs are named only where one of them is meant: in a
// straggler_rank the culprit, in an out_of_memory the one that died.
struct Finding {
  std::string rule;
  Severity severity = Severity::kInfo;
  Message title;        // what is wrong in a few words, without figures
  Message summary;      // one sentence with the figures; of kNotApplicable: why not
  Message explanation;  // how it was judged, what else could look like this
  std::vector<Advice> advice;
  std::optional<int32_t> rank;
  std::optional<int64_t> pid;  // tells processes without a rank apart
  std::optional<int32_t> gpu;
  double confidence = 1;  // 0..1, how sure the rule is
  // GPU time of this run that this took (allocated but not used for training because of it), and
  // the part of the run's wall time that the change would give back, 0..1. Absent: not known.
  std::optional<double> lost_gpu_s;
  std::optional<double> gain_ratio;
  std::vector<Evidence> evidence;
};

}  // namespace epochmeter::model
