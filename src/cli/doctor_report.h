// SPDX-License-Identifier: Apache-2.0
// What `doctor` found, as text for people and as JSON (docs/schema/doctor.schema.json).
#pragma once

#include <string>
#include <vector>

#include "collect/checks.h"
#include "collect/machine_probe.h"
#include "render/text.h"

namespace epochmeter::cli {

struct CheckResult {
  std::string id, summary;
  model::CheckFacts facts;
};

struct DoctorReport {
  std::string host;
  int32_t pid = 0;  // 0: none was asked about
  std::vector<CheckResult> checks;
  collect::MachineProbe probe;
  bool looked = true;  // false: the process asked about is not there, and nothing else was read
  int Count(model::CheckStatus status) const;
};

// The sources' share of one core at the default interval, by their usual cost and period; GPU
// sources mostly wait for the driver, which that counts as well. Nothing when none has a cost.
std::optional<double> CostRatio(const std::vector<collect::ProbedSource>& sources);

std::string DoctorJson(const DoctorReport& report);
// `options` as for reports: language of the headings, width, colour, ASCII.
std::string DoctorText(const DoctorReport& report, const render::TextOptions& options);

}  // namespace epochmeter::cli
