// SPDX-License-Identifier: Apache-2.0
// The steps wait for their batch: the input pipeline is slower than the training.
//
// Waiting is what the loop itself tells (data_wait_s), over all steady steps of a rank. False
// positives: a pipeline that prefetches to the GPU may be waited for while the GPU still works on
// earlier steps; then the GPU is busy, and it is only remarked on.
#include <algorithm>
#include <cmath>

#include "diagnose/rules/all.h"
#include "diagnose/say.h"

namespace epochmeter::diagnose {
namespace {

using model::Advice;
using model::Finding;
using model::Severity;

constexpr size_t kFewestSteps = 10;
constexpr size_t kMostFindings = 8;  // of ranks one by one
constexpr double kBusyRatio = 0.9;   // a GPU at this utilisation does not wait

struct Waiting {
  size_t steps = 0;  // told; each may stand for several
  double all_steps = 0;
  double wait_s = 0, step_s = 0;
  double Ratio() const { return step_s > 0 ? wait_s / step_s : 0; }
};

Waiting WaitingOf(const RankFacts& rank) {
  Waiting waiting;
  for (const TrainStep& step : rank.steps) {
    if (step.warm_up || std::isnan(step.duration_s) || std::isnan(step.data_wait_s)) continue;
    ++waiting.steps;
    waiting.all_steps += step.steps;
    waiting.wait_s += step.data_wait_s;
    waiting.step_s += step.duration_s;
  }
  return waiting;
}

// Mean utilisation of the rank's GPUs while it took its steady steps.
std::optional<double> Utilization(const Facts& facts, const RankFacts& rank) {
  model::Summary sum;
  for (const int32_t gpu : rank.gpus) {
    const model::Curve* curve = facts.GpuCurve(gpu, "utilization_ratio");
    if (curve != nullptr) sum.Append(Sum(*curve, rank.steady));
  }
  return sum.Mean();
}

std::vector<Advice> HowToFeed() {
  return {
      {.framework = "paddle",
       .text = Say("Load and decode in worker processes, and keep them between epochs.",
                   "用子进程加载和解码数据，并在各轮之间保留这些进程。"),
       .code = "paddle.io.DataLoader(dataset, num_workers=8, prefetch_factor=4, "
               "persistent_workers=True, use_shared_memory=True)"},
      {.framework = "tensorflow",
       .text = Say("Map in parallel, cache what does not change, and prefetch.",
                   "并行执行 map，缓存不变的数据，并预取。"),
       .code = "ds.map(decode, num_parallel_calls=tf.data.AUTOTUNE).batch(n)"
               ".prefetch(tf.data.AUTOTUNE)"},
      {.framework = "pytorch",
       .text = Say("Load and decode in worker processes, and keep them between epochs.",
                   "用子进程加载和解码数据，并在各轮之间保留这些进程。"),
       .code = "DataLoader(dataset, num_workers=8, prefetch_factor=4, persistent_workers=True, "
               "pin_memory=True)"},
  };
}

Finding Judged(const Facts& facts, const RankFacts& rank, const Waiting& waiting) {
  const double ratio = waiting.Ratio();
  const std::optional<double> busy = Utilization(facts, rank);
  const bool hidden = busy.value_or(0) >= kBusyRatio;
  Finding finding;
  const bool much = ratio >= facts.limits()["data_starvation.warning_ratio"];
  finding.severity = much && !hidden ? Severity::kWarning : Severity::kInfo;
  finding.rank = rank.rank;
  finding.pid = rank.pid;
  finding.confidence = busy ? 0.95 : 0.8;
  finding.summary = Say("{} waits for data in {} of the time of its steps ({} of {} a step).",
                        "{} 的步骤时间中有 {} 在等待数据（每步 {} / {}）。", rank.name,
                        SayPercent(ratio), SaySeconds(waiting.wait_s / waiting.all_steps),
                        SaySeconds(waiting.step_s / waiting.all_steps));
  finding.explanation =
      hidden
          ? Say("The GPU is {} busy all the same: it works on earlier steps meanwhile.",
                "但 GPU 利用率仍为 {}：它同时在处理之前的步骤。", SayPercent(*busy))
          : Say("Measured in the loop over {} steps after warm-up; the first batch of each "
                "epoch is left out.",
                "在预热之后的 {} 个步骤中于训练循环内测得；不含每轮的第一个批次。", waiting.steps);
  finding.advice = HowToFeed();
  if (!hidden) {
    finding.lost_gpu_s =
        waiting.wait_s * static_cast<double>(std::max<size_t>(rank.gpus.size(), 1));
    finding.gain_ratio = std::min(1.0, waiting.wait_s / std::max(facts.duration_s(), 1e-9));
  }
  finding.evidence.push_back(
      {.series = rank.name + " data_wait_s",
       .interval = {.begin_ns = rank.steady.front().begin_ns, .end_ns = rank.steady.back().end_ns},
       .values = {{"data_wait_ratio", ratio},
                  {"data_wait_total_s", waiting.wait_s},
                  {"steps", static_cast<double>(waiting.steps)}}});
  if (busy) finding.evidence.back().values.emplace_back("utilization_ratio", *busy);
  return finding;
}

// With many ranks that wait, the worst speaks for all.
void Fold(std::vector<Finding>* findings) {
  if (findings->size() <= kMostFindings) return;
  const auto worst =
      std::max_element(findings->begin(), findings->end(), [](const Finding& a, const Finding& b) {
        return a.evidence.front().values.front().second < b.evidence.front().values.front().second;
      });
  double lost_gpu_s = 0;
  for (const Finding& finding : *findings) lost_gpu_s += finding.lost_gpu_s.value_or(0);
  Finding folded = std::move(*worst);
  if (lost_gpu_s > 0) folded.lost_gpu_s = lost_gpu_s;
  const auto others = Say(" So do {} other ranks; this one waits longest.",
                          "另有 {} 个 rank 也在等待，该 rank 最久。", findings->size() - 1);
  folded.explanation.en += others.en;
  folded.explanation.zh += others.zh;
  findings->clear();
  findings->push_back(std::move(folded));
}

Judgement Judge(const Facts& facts) {
  Judgement judgement;
  bool any = false;
  for (const RankFacts& rank : facts.ranks()) {
    const Waiting waiting = WaitingOf(rank);
    if (waiting.steps < kFewestSteps || rank.steady.empty()) continue;
    any = true;
    if (waiting.Ratio() < facts.limits()["data_starvation.info_ratio"]) continue;
    judgement.findings.push_back(Judged(facts, rank, waiting));
  }
  Fold(&judgement.findings);
  if (any) return judgement;
  return NotApplicable(
      Say("no rank tells how long its steps wait for data, in at least {} steps "
          "after warm-up",
          "没有任何 rank 在预热之后的至少 {} 个步骤中报告等待数据的时间", kFewestSteps));
}

}  // namespace

namespace rules {

const RuleDef kDataStarvation = {
    .id = "data_starvation",
    .Title = [] { return Say("The training waits for its data", "训练在等待数据"); },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
