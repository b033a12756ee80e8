// SPDX-License-Identifier: Apache-2.0
// The GPUs are used little while steps are taken.
//
// Needs the utilisation of the job's GPUs over steady steps. Idle stretches, stalls, evaluation and
// checkpoints are left out, for other rules speak of them; so is the reason where data_starvation
// or low_sm_activity give it, and then this only remarks. False positives: utilisation counts any
// kernel, however small, so a low figure is never too pessimistic; slices of a GPU (MIG) have none.
#include "diagnose/activity.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"

namespace epochmeter::diagnose {
namespace {

using model::Advice;
using model::Finding;
using model::Interval;
using model::Severity;

constexpr double kShortestJudged_s = 5;
constexpr size_t kMostListed = 16;

std::vector<Advice> HowToUse() {
  const auto text =
      Say("Raise the batch size as far as memory allows, use mixed precision, overlap "
          "copies with work, and profile some steps to see what the GPU waits for.",
          "在显存允许的范围内增大批次、使用混合精度、让数据拷贝与计算重叠，并对若干步做"
          "性能剖析，找出 GPU 在等待什么。");
  return {
      {.framework = "paddle",
       .text = text,
       .code = "with paddle.profiler.Profiler(scheduler=(100, 110)) as prof: ...  # prof.step()"},
      {.framework = "tensorflow",
       .text = text,
       .code = "tf.keras.callbacks.TensorBoard(log_dir, profile_batch=(100, 110))"},
      {.framework = "pytorch",
       .text = text,
       .code = "with torch.profiler.profile(schedule=torch.profiler.schedule(wait=100, warmup=2, "
               "active=5)) as prof: ...  # prof.step()"}};
}

Judgement Judge(const Facts& facts) {
  const std::vector<Interval> judged = WorkingTime(facts);
  const std::vector<int32_t> gpus = GpusOfJob(facts);
  const auto mean = MeanOver(facts, gpus, "utilization_ratio", judged);
  if (!mean || TotalSeconds(judged) < kShortestJudged_s) {
    return NotApplicable(Say("less than {} of steady steps with the utilisation of the job's GPUs",
                             "带有作业 GPU 利用率的稳定步骤不足 {}",
                             SaySeconds(kShortestJudged_s)));
  }
  Judgement judgement;
  const Limits& limits = facts.limits();
  if (*mean >= limits["low_gpu_utilization.info_ratio"]) return judgement;
  const model::Message why = WhyLittleWork(facts);
  Finding finding;
  const bool much = *mean < limits["low_gpu_utilization.warning_ratio"] && why.empty();
  finding.severity = much ? Severity::kWarning : Severity::kInfo;
  if (gpus.size() == 1) finding.gpu = gpus.front();
  finding.confidence = 0.9;
  finding.summary = Say("Over the steady steps the GPUs are used {} of the time.",
                        "在稳定的训练步骤中，GPU 的利用率为 {}。", SayPercent(*mean));
  finding.explanation =
      why.empty() ? Say("Evaluation, checkpoints, idle stretches and stalls are left out of it.",
                        "不含评估、检查点、空闲时段和停滞。")
                  : why;
  finding.advice = HowToUse();
  for (size_t i = 0; i < gpus.size() && i < kMostListed; ++i) {
    const auto own = MeanOver(facts, gpus[i], "utilization_ratio", judged);
    if (!own) continue;
    finding.evidence.push_back(
        {.series = "gpu" + std::to_string(gpus[i]) + " utilization_ratio",
         .interval = {.begin_ns = judged.front().begin_ns, .end_ns = judged.back().end_ns},
         .values = {{"utilization_ratio", *own}},
         .note = {},
         .steps = {}});
  }
  judgement.findings.push_back(std::move(finding));
  return judgement;
}

}  // namespace

namespace rules {

const RuleDef kLowGpuUtilization = {
    .id = "low_gpu_utilization",
    .Title = [] { return Say("The GPUs are used little", "GPU 利用率低"); },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
