// SPDX-License-Identifier: Apache-2.0
// The words of findings, for each page that shows them: verdict, evidence, what to change.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/report.h"
#include "model/run.h"
#include "render/advice.h"
#include "render/page.h"

namespace epochmeter::render {

// "WARNING".
std::string_view SeverityWord(model::Severity severity, Language language);

// "[rank1 gpu1 data_starvation]".
std::string RuleText(const model::Finding& finding);

// "0.04 GPU-hours lost; without it 29 % less time (1.4 ×)"; empty when neither is known.
std::string CostText(const model::Finding& finding, Language language);
// "rank0 data_wait_s, +2.1 s to +93 s, steps 20, 21: data wait 38 %, steps 792".
std::string EvidenceText(const model::Run& run, const model::Evidence& evidence, Language language);

// What the run comes to in one sentence, and what to do about it.
struct Verdict {
  model::Severity severity = model::Severity::kInfo;
  bool good = false;                      // judged, and nothing is wrong
  std::string text;                       // one sentence
  const model::Finding* worst = nullptr;  // null when nothing needs a change
  std::optional<AdviceGroup> advice;      // its first
};
Verdict VerdictOf(const model::Run& run, const model::Report& report, Language language);

// The first change without its code, and for which framework it is where that is not known; empty
// when there is none.
std::string FirstAdvice(const Verdict& verdict, Language language);
// The first line of its code; empty when there is none, or another for each framework.
std::string FirstCode(const Verdict& verdict);

size_t CountOf(const model::Report& report, model::Severity severity);

void AddVerdict(const model::Run& run, const model::Report& report, Page* page);
// Every finding in full; the rules that could not judge as a count, or one by one where the options
// want all.
void AddFindings(const model::Run& run, const model::Report& report, Page* page);

}  // namespace epochmeter::render
