// SPDX-License-Identifier: Apache-2.0
// The one list of rules: what is wrong with a run, the evidence, what to change. A new rule is one
// file rules/<id>.cc with its RuleDef and a line in rules.cc.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "model/report.h"
#include "model/run.h"

namespace epochmeter::diagnose {

struct RuleDef {
  std::string_view id;     // dotted or snake lower case; never renamed
  std::string_view title;  // one line for lists
  // Fields of series without which the rule can't judge; it is then reported as not applicable.
  std::span<const std::string_view> needs;
  // A pure function of the run and of the tables worked out from it.
  std::vector<model::Finding> (*Evaluate)(const model::Run& run, const model::Report& report);
};

std::span<const RuleDef> Rules();

// Findings of `rules`, worst first. A rule whose needs no series meets gives one finding of
// severity not_applicable that names what is missing.
std::vector<model::Finding> EvaluateRules(std::span<const RuleDef> rules, const model::Run& run,
                                          const model::Report& report);

}  // namespace epochmeter::diagnose
