// SPDX-License-Identifier: Apache-2.0
// The GPU has tensor cores and works hard without them.
//
// Needs SM and tensor activity (GPM, which only GPUs with tensor cores have) over steady steps.
// False positives: work that has no matrix products, or that needs full single or double precision.
#include <algorithm>

#include "diagnose/activity.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"

namespace epochmeter::diagnose {
namespace {

using model::Advice;
using model::Finding;
using model::Interval;
using model::Severity;

struct Pipes {
  int32_t gpu = -1;
  double sm = 0, tensor = 0;
  std::optional<double> fp32, fp64;
};

std::vector<Advice> HowToUseThem() {
  const auto text =
      Say("Train in mixed precision (bfloat16), or at least let matrix products run "
          "in TF32.",
          "使用混合精度（bfloat16）训练，或至少让矩阵乘法以 TF32 运行。");
  return {{.framework = "paddle",
           .text = text,
           .code = "with paddle.amp.auto_cast(level='O1', dtype='bfloat16'):\n"
                   "    loss = loss_fn(model(x), y)"},
          {.framework = "tensorflow",
           .text = text,
           .code = "tf.keras.mixed_precision.set_global_policy('mixed_bfloat16')\n"
                   "tf.config.experimental.enable_tensor_float_32_execution(True)"},
          {.framework = "pytorch",
           .text = text,
           .code = "torch.set_float32_matmul_precision('high')  # TF32\n"
                   "with torch.autocast('cuda', dtype=torch.bfloat16):\n"
                   "    loss = loss_fn(model(x), y)"}};
}

std::optional<Pipes> PipesOf(const Facts& facts, int32_t gpu, std::span<const Interval> judged) {
  const auto sm = MeanOver(facts, gpu, "sm_active_ratio", judged);
  const auto tensor = MeanOver(facts, gpu, "tensor_active_ratio", judged);
  if (!sm || !tensor) return {};
  return Pipes{.gpu = gpu,
               .sm = *sm,
               .tensor = *tensor,
               .fp32 = MeanOver(facts, gpu, "fp32_active_ratio", judged),
               .fp64 = MeanOver(facts, gpu, "fp64_active_ratio", judged)};
}

Finding FindingOf(const Pipes& pipes, bool only, std::span<const Interval> judged) {
  const bool doubles = pipes.fp64.value_or(0) > pipes.fp32.value_or(0);
  Finding finding;
  finding.severity = doubles ? Severity::kInfo : Severity::kWarning;
  if (only) finding.gpu = pipes.gpu;
  finding.confidence = 0.85;
  finding.summary = Say("GPU {} works ({} SM activity), but its tensor cores do not ({}).",
                        "GPU {} 在工作（SM 活动率 {}），但张量核心没有工作（{}）。", pipes.gpu,
                        SayPercent(pipes.sm), SayPercent(pipes.tensor));
  finding.explanation =
      doubles ? Say("It calculates in double precision, perhaps on purpose.",
                    "它以双精度计算，可能是有意为之。")
              : Say("Matrix products in single precision run on the slow pipes; tensor cores do "
                    "them many times faster.",
                    "单精度矩阵乘法运行在较慢的管线上；张量核心要快许多倍。");
  finding.advice = HowToUseThem();
  model::Evidence evidence{
      .series = "gpu" + std::to_string(pipes.gpu) + " tensor_active_ratio",
      .interval = {.begin_ns = judged.front().begin_ns, .end_ns = judged.back().end_ns},
      .values = {{"tensor_active_ratio", pipes.tensor}, {"sm_active_ratio", pipes.sm}},
      .note = {},
      .steps = {}};
  if (pipes.fp32) evidence.values.emplace_back("fp32_active_ratio", *pipes.fp32);
  if (pipes.fp64) evidence.values.emplace_back("fp64_active_ratio", *pipes.fp64);
  finding.evidence.push_back(std::move(evidence));
  return finding;
}

Judgement Judge(const Facts& facts) {
  const std::vector<Interval> judged = WorkingTime(facts);
  const std::vector<int32_t> gpus = GpusOfJob(facts);
  const Limits& limits = facts.limits();
  Judgement judgement;
  bool any = false;
  for (const int32_t gpu : gpus) {
    const std::optional<Pipes> pipes = PipesOf(facts, gpu, judged);
    if (!pipes) continue;
    any = true;
    const bool unused = pipes->sm >= limits["tensor_cores_unused.sm_ratio"] &&
                        pipes->tensor < limits["tensor_cores_unused.tensor_ratio"];
    // All of a job's GPUs run the same model: one says it for all.
    if (unused && judgement.findings.empty()) {
      judgement.findings.push_back(FindingOf(*pipes, gpus.size() == 1, judged));
    }
  }
  if (any) return judgement;
  return NotApplicable(Say("no SM and tensor activity of the job's GPUs over steady steps",
                           "稳定步骤期间没有作业 GPU 的 SM 与张量核心活动率"));
}

}  // namespace

namespace rules {

const RuleDef kTensorCoresUnused = {
    .id = "tensor_cores_unused",
    .Title = [] { return Say("The tensor cores are not used", "张量核心没有被使用"); },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
