// SPDX-License-Identifier: Apache-2.0
// The training stops for a moment in regular distances: each so many steps, or each so many
// seconds.
//
// Needs durations of at least 30 steps after warm-up, and four stalls. Regular in steps points at
// the loop itself (a checkpoint, a flush of the log, an evaluation of a few batches), regular in
// time at something beside it (garbage collection, a cron job, a logger's thread). False positives:
// a distance that is one epoch is no period: its first steps are warm-up and left out already.
#include <algorithm>

#include "diagnose/checkpoints.h"
#include "diagnose/periods.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"
#include "diagnose/slow_steps.h"

namespace epochmeter::diagnose {
namespace {

using model::Finding;
using model::Severity;

constexpr size_t kMostNamed = 20;

// Whether most of the stalls have a checkpoint in them, which has a rule of its own.
bool AreCheckpoints(const Facts& facts, const RankFacts& rank, const SlowSteps& steps) {
  const std::vector<Saves> found = FindSaves(facts);
  const auto own = std::find_if(found.begin(), found.end(), [&](const Saves& saves) {
    return &facts.ranks()[saves.rank] == &rank;
  });
  if (own == found.end()) return false;
  size_t inside = 0;
  size_t at = 0;
  for (const SlowStep& slow : steps.slow) {
    const TrainStep& step = rank.steps[slow.at];
    while (at < own->spans.size() && own->spans[at].end_ns < step.begin_ns) ++at;
    if (at < own->spans.size() && own->spans[at].begin_ns <= step.end_ns) ++inside;
  }
  return 2 * inside > steps.slow.size();
}

model::Message Distance(const Period& period) {
  if (period.steps > 0) {
    return Say("each {:.0f} steps ({})", "每 {:.0f} 个步骤（{}）", period.steps,
               SaySeconds(period.seconds));
  }
  return Say("each {}", "每 {}", SaySeconds(period.seconds));
}

Finding FindingOf(const Facts& facts, const RankFacts& rank, const SlowSteps& steps,
                  const Period& period) {
  const bool checkpoints = AreCheckpoints(facts, rank, steps);
  const bool much = steps.ExcessRatio() >= facts.limits()["periodic_stall.warning_ratio"];
  const double each_s = steps.ExcessSeconds() / static_cast<double>(period.stalls);
  const model::Message distance = Distance(period);
  Finding finding;
  finding.severity = much && !checkpoints ? Severity::kWarning : Severity::kInfo;
  finding.rank = rank.rank;
  finding.pid = rank.pid;
  finding.confidence = 0.9;
  finding.summary = {
      .en = fmt::format("{} stops for about {} {}: {} of the time of its steps.", rank.name,
                        SaySeconds(each_s), distance.en, SayPercent(steps.ExcessRatio())),
      .zh = fmt::format("{} {}停顿约 {}：占其步骤时间的 {}。", rank.name, distance.zh,
                        SaySeconds(each_s), SayPercent(steps.ExcessRatio()))};
  if (checkpoints) {
    finding.explanation = Say("These are its checkpoints; see checkpoint_stall.",
                              "这些是保存检查点；见 checkpoint_stall。");
  } else if (period.steps > 0) {
    finding.explanation =
        Say("Regular in steps, so it is the loop itself: a checkpoint, a flush of the log, a "
            "metric that is computed each so many steps.",
            "按步数规律出现，因此来自训练循环本身：保存检查点、刷新日志或每隔若干步计算的指标。");
  } else {
    finding.explanation =
        Say("Regular in time and not in steps, so it comes from beside the loop: garbage "
            "collection, a logger's thread, another job on the host.",
            "按时间而非步数规律出现，因此来自训练循环之外：垃圾回收、日志线程或主机上的其他作业。");
  }
  finding.advice = {
      {.framework = "",
       .text = Say("Do what comes that often in the background or less often; for Python's "
                   "garbage collection, take it out of the loop.",
                   "把如此频繁的操作放到后台或降低频率；对于 Python 垃圾回收，将其移出循环。"),
       .code = "import gc; gc.freeze(); gc.disable()  # and gc.collect() between epochs"}};
  finding.lost_gpu_s =
      steps.ExcessSeconds() * static_cast<double>(std::max<size_t>(rank.gpus.size(), 1));
  if (facts.duration_s() > 0) finding.gain_ratio = steps.ExcessSeconds() / facts.duration_s();
  const TrainStep& first = rank.steps[steps.slow.front().at];
  const TrainStep& last = rank.steps[steps.slow.back().at];
  model::Evidence evidence{.series = rank.name + " duration_s",
                           .interval = {.begin_ns = first.begin_ns, .end_ns = last.end_ns},
                           .values = {{"median_s", steps.median_s},
                                      {"stall_mean_s", each_s},
                                      {"stalls", static_cast<double>(period.stalls)},
                                      {"period_s", period.seconds}},
                           .note = {},
                           .steps = {}};
  if (period.steps > 0) evidence.values.emplace_back("period_steps", period.steps);
  for (const SlowStep& slow : steps.slow) {
    if (evidence.steps.size() == kMostNamed) break;
    if (rank.steps[slow.at].step != model::kNotKnown) {
      evidence.steps.push_back(rank.steps[slow.at].step);
    }
  }
  finding.evidence.push_back(std::move(evidence));
  return finding;
}

Judgement Judge(const Facts& facts) {
  const RankFacts* worst = nullptr;
  SlowSteps worst_steps;
  std::optional<Period> worst_period;
  bool judged = false;
  for (const RankFacts& rank : facts.ranks()) {
    SlowSteps steps = SlowStepsOf(rank, facts.limits()["periodic_stall.median_factor"],
                                  facts.limits()["step_outlier.deviations"]);
    judged |= steps.limit_s > 0;
    const std::optional<Period> period = PeriodOf(rank, steps);
    if (!period || (worst != nullptr && steps.ExcessSeconds() <= worst_steps.ExcessSeconds())) {
      continue;
    }
    worst = &rank;
    worst_steps = std::move(steps);
    worst_period = period;
  }
  if (!judged) {
    return NotApplicable(Say("no rank has the durations of 30 steps after warm-up",
                             "没有任何 rank 在预热之后有 30 个步骤的时长"));
  }
  Judgement judgement;
  if (worst == nullptr) return judgement;
  if (worst_steps.ExcessRatio() < facts.limits()["periodic_stall.info_ratio"]) return judgement;
  judgement.findings.push_back(FindingOf(facts, *worst, worst_steps, *worst_period));
  return judgement;
}

}  // namespace

namespace rules {

const RuleDef kPeriodicStall = {
    .id = "periodic_stall",
    .Title = [] { return Say("The training stops in regular distances", "训练有规律地停顿"); },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
