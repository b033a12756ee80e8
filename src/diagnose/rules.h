// SPDX-License-Identifier: Apache-2.0
// The one list of rules: what is wrong with a run, the evidence, what to change. A new rule is one
// file rules/<id>.cc with its RuleDef and a line in rules.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/facts.h"
#include "model/report.h"

namespace epochmeter::diagnose {

// What a rule comes to. Without findings and without a reason it judged the run and all was well.
struct Judgement {
  std::vector<model::Finding> findings;
  model::Message not_applicable;  // why it could not judge; then without findings
};

// The rule can't judge for this reason.
Judgement NotApplicable(model::Message reason);

struct RuleDef {
  std::string_view id;        // snake case; never renamed
  model::Message (*Title)();  // what it finds, in a few words; title of its findings
  // A pure function of the facts, which outlive the call. It leaves `rule` and `title` to the
  // engine.
  Judgement (*Judge)(const Facts& facts);
};

std::span<const RuleDef* const> Rules();

// Findings of `rules`: worst first, at equal severity the one that lost most GPU time first. A rule
// that could not judge gives one finding of severity not_applicable whose summary says why.
std::vector<model::Finding> EvaluateRules(std::span<const RuleDef* const> rules,
                                          const Facts& facts);

// Ids of the rules that could judge, by what EvaluateRules found with them; in the order of rules.
std::vector<std::string> RulesJudged(std::span<const RuleDef* const> rules,
                                     const std::vector<model::Finding>& findings);

}  // namespace epochmeter::diagnose
