// SPDX-License-Identifier: Apache-2.0
#include "diagnose/rules.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "diagnose/rules/all.h"

namespace epochmeter::diagnose {
namespace {

constexpr auto kRules = std::to_array<const RuleDef*>({
    &rules::kGpuMemoryLeak,     &rules::kOomForecast,       &rules::kOutOfMemory,
    &rules::kMemorySpike,       &rules::kAllocatorSlack,    &rules::kInvisibleMemory,
    &rules::kBatchHeadroom,     &rules::kHostMemoryLeak,    &rules::kWorkerMemoryGrowth,
    &rules::kShmExhaustion,     &rules::kZombieGpuMemory,   &rules::kHostMemoryPressure,
    &rules::kDataStarvation,    &rules::kCpuBound,          &rules::kIoBound,
    &rules::kWorkerCount,       &rules::kCheckpointStall,   &rules::kEvalShare,
    &rules::kStalledSteps,      &rules::kStragglerRank,     &rules::kStepOutlier,
    &rules::kPeriodicStall,     &rules::kSlowStart,         &rules::kIdleGpu,
    &rules::kLowGpuUtilization, &rules::kTensorCoresUnused, &rules::kBurstyGpu,
    &rules::kGpuImbalance,      &rules::kThermalThrottle,   &rules::kPowerThrottle,
    &rules::kEccErrors,         &rules::kLowSmActivity,     &rules::kXidError,
    &rules::kPcieBound,         &rules::kNvlinkErrors,      &rules::kLossNotFinite,
    &rules::kLossSpike,         &rules::kRecorderHealth,
});

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

Judgement NotApplicable(model::Message reason) {
  return {.findings = {}, .not_applicable = std::move(reason)};
}

std::span<const RuleDef* const> Rules() { return kRules; }

std::vector<model::Finding> EvaluateRules(std::span<const RuleDef* const> rules,
                                          const Facts& facts) {
  std::vector<model::Finding> findings;
  for (const RuleDef* rule : rules) {
    Judgement judgement = rule->Judge(facts);
    if (!judgement.not_applicable.empty()) {
      model::Finding finding;
      finding.severity = model::Severity::kNotApplicable;
      finding.summary = std::move(judgement.not_applicable);
      judgement.findings.push_back(std::move(finding));
    }
    for (model::Finding& finding : judgement.findings) {
      finding.rule = rule->id;
      finding.title = rule->Title();
      findings.push_back(std::move(finding));
    }
  }
  const auto key = [](const model::Finding& finding) {
    return std::pair(Order(finding.severity), -finding.lost_gpu_s.value_or(0));
  };
  std::stable_sort(findings.begin(), findings.end(),
                   [&](const auto& a, const auto& b) { return key(a) < key(b); });
  return findings;
}

}  // namespace epochmeter::diagnose
