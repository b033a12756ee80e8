// SPDX-License-Identifier: Apache-2.0
// Single steps that took far longer than the others, and what else happened in them.
//
// Needs durations of at least 30 steps after warm-up. Step times are skewed in most trainings, so
// the limit is robust: twice the median and five scaled deviations above it. It is a warning only
// where the slow steps took a share of all time that is worth a change. False positives: batches of
// very different lengths (then the batch is named), and slow steps in regular distances, which
// periodic_stall judges.
#include <algorithm>
#include <cmath>
#include <map>

#include "diagnose/periods.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"
#include "diagnose/slow_steps.h"

namespace epochmeter::diagnose {
namespace {

using model::Finding;
using model::Severity;

constexpr size_t kMostNamed = 10;
constexpr double kWaitShare = 0.5;    // of a slow step's excess
constexpr double kBatchFactor = 1.2;  // of the usual batch

// What a slow step had that the others had not; index in the words below.
enum class Cause : uint8_t { kData, kCheckpoint, kEvaluation, kBatch, kUnknown };

model::Message CauseWords(Cause cause) {
  switch (cause) {
    case Cause::kData:
      return Say("waiting for data", "等待数据");
    case Cause::kCheckpoint:
      return Say("a checkpoint", "保存检查点");
    case Cause::kEvaluation:
      return Say("an evaluation", "评估");
    case Cause::kBatch:
      return Say("a larger batch", "更大的批次");
    case Cause::kUnknown:
      break;
  }
  return Say("nothing that was recorded", "没有记录到原因");
}

double MedianBatch(const RankFacts& rank) {
  std::vector<double> sizes;
  for (const TrainStep& step : rank.steps) {
    if (step.batch_size > 0) sizes.push_back(step.batch_size);
  }
  if (sizes.empty()) return 0;
  const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  return *middle;
}

Cause CauseOf(const RankFacts& rank, const SlowStep& slow, double usual_batch) {
  const TrainStep& step = rank.steps[slow.at];
  if (step.data_wait_s > kWaitShare * slow.excess_s * step.steps) return Cause::kData;
  // Phases come in the order of their begins; few are open at once.
  for (const PhaseSpan& phase : rank.phases) {
    if (phase.interval.begin_ns > step.end_ns) break;
    if (phase.interval.end_ns < step.begin_ns) continue;
    if (phase.name == "checkpoint") return Cause::kCheckpoint;
    if (phase.name == "eval") return Cause::kEvaluation;
  }
  if (usual_batch > 0 && step.batch_size > kBatchFactor * usual_batch) return Cause::kBatch;
  return Cause::kUnknown;
}

// The slowest first.
std::vector<SlowStep> Slowest(const SlowSteps& steps) {
  std::vector<SlowStep> order = steps.slow;
  std::sort(order.begin(), order.end(),
            [](const SlowStep& a, const SlowStep& b) { return a.duration_s > b.duration_s; });
  return order;
}

model::Evidence EvidenceOf(const RankFacts& rank, const SlowSteps& steps) {
  const std::vector<SlowStep> slowest = Slowest(steps);
  const TrainStep& worst = rank.steps[slowest.front().at];
  model::Evidence evidence{.series = rank.name + " duration_s",
                           .interval = {.begin_ns = worst.begin_ns, .end_ns = worst.end_ns},
                           .values = {{"median_s", steps.median_s},
                                      {"limit_s", steps.limit_s},
                                      {"slowest_s", slowest.front().duration_s},
                                      {"slow_steps", static_cast<double>(steps.slow.size())},
                                      {"excess_total_s", steps.ExcessSeconds()}},
                           .note = Say("the slowest step", "最慢的步骤"),
                           .steps = {}};
  for (size_t i = 0; i < std::min(slowest.size(), kMostNamed); ++i) {
    const int64_t number = rank.steps[slowest[i].at].step;
    if (number != model::kNotKnown) evidence.steps.push_back(number);
  }
  return evidence;
}

Finding FindingOf(const Facts& facts, const RankFacts& rank, const SlowSteps& steps) {
  const double usual_batch = MedianBatch(rank);
  std::map<Cause, size_t> causes;
  for (const SlowStep& slow : steps.slow) ++causes[CauseOf(rank, slow, usual_batch)];
  model::Message list;
  for (const auto& [cause, count] : causes) {
    const model::Message words = CauseWords(cause);
    list.en += (list.en.empty() ? "" : ", ") + words.en + " (" + std::to_string(count) + ")";
    list.zh += (list.zh.empty() ? "" : "，") + words.zh + "（" + std::to_string(count) + "）";
  }
  const bool much =
      steps.slow.size() >= 3 && steps.ExcessRatio() >= facts.limits()["step_outlier.warning_ratio"];
  const bool regular = PeriodOf(rank, steps).has_value();
  Finding finding;
  finding.severity = much && !regular ? Severity::kWarning : Severity::kInfo;
  finding.rank = rank.rank;
  finding.pid = rank.pid;
  finding.confidence = 0.9;
  finding.summary =
      Say("{} of {} steps took more than {} (median {}, the slowest {}): {} of the "
          "time of all steps.",
          "{1} 个步骤中有 {0} 个超过 {2}（中位数 {3}，最慢 {4}）：占全部步骤时间的 {5}。",
          steps.slow.size(), steps.judged, SaySeconds(steps.limit_s), SaySeconds(steps.median_s),
          SaySeconds(Slowest(steps).front().duration_s), SayPercent(steps.ExcessRatio()));
  finding.explanation = {.en = "What they had that the others had not: " + list.en + ".",
                         .zh = "这些步骤的特别之处：" + list.zh + "。"};
  if (causes.contains(Cause::kData)) {
    finding.advice.push_back(
        {.framework = "",
         .text = Say("Make the data ready ahead: more workers, a deeper queue, and no single huge "
                     "or remote file.",
                     "提前准备数据：增加加载进程，加深队列，避免单个过大或远程的文件。"),
         .code = ""});
  }
  finding.advice.push_back(
      {.framework = "",
       .text = Say("Look at what the host did in these steps: garbage collection, logging, other "
                   "jobs, throttled clocks.",
                   "查看这些步骤期间主机在做什么：垃圾回收、写日志、其他作业、降频。"),
       .code = "import gc; gc.freeze(); gc.disable()  # and gc.collect() between epochs"});
  finding.lost_gpu_s =
      steps.ExcessSeconds() * static_cast<double>(std::max<size_t>(rank.gpus.size(), 1));
  if (facts.duration_s() > 0) finding.gain_ratio = steps.ExcessSeconds() / facts.duration_s();
  finding.evidence.push_back(EvidenceOf(rank, steps));
  return finding;
}

Judgement Judge(const Facts& facts) {
  const RankFacts* worst = nullptr;
  SlowSteps worst_steps;
  bool judged = false;
  for (const RankFacts& rank : facts.ranks()) {
    SlowSteps steps = SlowStepsOf(rank, facts.limits()["step_outlier.median_factor"],
                                  facts.limits()["step_outlier.deviations"]);
    judged |= steps.limit_s > 0;
    if (steps.slow.empty()) continue;
    if (worst != nullptr && steps.ExcessSeconds() <= worst_steps.ExcessSeconds()) continue;
    worst = &rank;
    worst_steps = std::move(steps);
  }
  if (!judged) {
    return NotApplicable(Say("no rank has the durations of 30 steps after warm-up",
                             "没有任何 rank 在预热之后有 30 个步骤的时长"));
  }
  Judgement judgement;
  if (worst == nullptr) return judgement;
  if (worst_steps.ExcessRatio() < facts.limits()["step_outlier.info_ratio"]) return judgement;
  judgement.findings.push_back(FindingOf(facts, *worst, worst_steps));
  return judgement;
}

}  // namespace

namespace rules {

const RuleDef kStepOutlier = {
    .id = "step_outlier",
    .Title =
        [] { return Say("Some steps take far longer than the others", "个别步骤远慢于其他步骤"); },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
