// SPDX-License-Identifier: Apache-2.0
#include "diagnose/rules.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <set>
#include <string>
#include <utility>

#include "diagnose/rules/all.h"

namespace epochmeter::diagnose {
namespace {

constexpr auto kRules = std::to_array<const RuleDef*>({
    &rules::kGpuMemoryLeak,      &rules::kPrintedMemoryGrowth,
    &rules::kOomForecast,        &rules::kOutOfMemory,
    &rules::kMemorySpike,        &rules::kAllocatorSlack,
    &rules::kInvisibleMemory,    &rules::kBatchHeadroom,
    &rules::kHostMemoryLeak,     &rules::kWorkerMemoryGrowth,
    &rules::kShmExhaustion,      &rules::kZombieGpuMemory,
    &rules::kHostMemoryPressure, &rules::kDataStarvation,
    &rules::kCpuBound,           &rules::kIoBound,
    &rules::kWorkerCount,        &rules::kCheckpointStall,
    &rules::kEvalShare,          &rules::kStalledSteps,
    &rules::kStragglerRank,      &rules::kSlowingDown,
    &rules::kStepOutlier,        &rules::kPeriodicStall,
    &rules::kSlowStart,          &rules::kIdleGpu,
    &rules::kLowGpuUtilization,  &rules::kTensorCoresUnused,
    &rules::kBurstyGpu,          &rules::kGpuImbalance,
    &rules::kThermalThrottle,    &rules::kPowerThrottle,
    &rules::kEccErrors,          &rules::kLowSmActivity,
    &rules::kXidError,           &rules::kPcieBound,
    &rules::kNvlinkErrors,       &rules::kLossNotFinite,
    &rules::kLossSpike,          &rules::kRecorderHealth,
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

// On two threads. They share the facts, which nobody changes, and the count; each judgement is
// written by the one thread that drew its number. Where no thread can be had, std::async runs the
// second after the first, and it finds nothing left to do.
std::vector<Judgement> JudgeAll(std::span<const RuleDef* const> rules, const Facts& facts) {
  std::vector<Judgement> judgements(rules.size());
  std::atomic<size_t> next = 0;
  const auto judge = [&] {
    for (size_t i = next++; i < rules.size(); i = next++) judgements[i] = rules[i]->Judge(facts);
  };
  std::future<void> second = std::async(judge);
  judge();
  second.get();
  return judgements;
}

}  // namespace

Judgement NotApplicable(model::Message reason) {
  return {.findings = {}, .not_applicable = std::move(reason)};
}

std::span<const RuleDef* const> Rules() { return kRules; }

std::vector<model::Finding> EvaluateRules(std::span<const RuleDef* const> rules,
                                          const Facts& facts) {
  std::vector<Judgement> judgements = JudgeAll(rules, facts);
  std::vector<model::Finding> findings;
  for (size_t i = 0; i < rules.size(); ++i) {
    const RuleDef* rule = rules[i];
    Judgement& judgement = judgements[i];
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

std::vector<std::string> RulesJudged(std::span<const RuleDef* const> rules,
                                     const std::vector<model::Finding>& findings) {
  std::set<std::string_view> not_applicable;
  for (const model::Finding& finding : findings) {
    if (finding.severity == model::Severity::kNotApplicable) not_applicable.insert(finding.rule);
  }
  std::vector<std::string> judged;
  for (const RuleDef* rule : rules) {
    if (not_applicable.count(rule->id) == 0) judged.emplace_back(rule->id);
  }
  return judged;
}

}  // namespace epochmeter::diagnose
