// SPDX-License-Identifier: Apache-2.0
#include "diagnose/rules.h"

#include <algorithm>
#include <string>

#include "base/strings.h"

namespace epochmeter::diagnose {
namespace {

bool HasSeries(const model::Run& run, std::string_view field) {
  return std::any_of(run.series.begin(), run.series.end(),
                     [&](const model::SeriesDef& series) { return series.metric.field == field; });
}

// 0 is shown first.
int Order(model::Severity severity) {
  switch (severity) {
    case model::Severity::kCritical:
      return 0;
    case model::Severity::kWarning:
      return 1;
    case model::Severity::kInfo:
      return 2;
    case model::Severity::kNotApplicable:
      return 3;
  }
  return 3;
}

}  // namespace

std::span<const RuleDef> Rules() { return {}; }

std::vector<model::Finding> EvaluateRules(std::span<const RuleDef> rules, const model::Run& run,
                                          const model::Report& report) {
  std::vector<model::Finding> findings;
  for (const RuleDef& rule : rules) {
    std::vector<std::string> missing;
    for (const std::string_view field : rule.needs) {
      if (!HasSeries(run, field)) missing.emplace_back(field);
    }
    if (!missing.empty()) {
      model::Finding finding;
      finding.rule = rule.id;
      finding.severity = model::Severity::kNotApplicable;
      finding.summary = "not judged: the run has no " + base::Join(missing, ", ");
      findings.push_back(std::move(finding));
      continue;
    }
    for (model::Finding& finding : rule.Evaluate(run, report)) {
      findings.push_back(std::move(finding));
    }
  }
  std::stable_sort(findings.begin(), findings.end(), [](const auto& a, const auto& b) {
    return Order(a.severity) < Order(b.severity);
  });
  return findings;
}

}  // namespace epochmeter::diagnose
