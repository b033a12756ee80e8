// SPDX-License-Identifier: Apache-2.0
// The GPU counts as used, but its multiprocessors have next to nothing to do.
//
// Needs SM activity (GPM), or, with less confidence, utilisation and power beside the power limit.
// Judged over steady steps, less idle stretches and stalls, on the busiest of the job's GPUs: a
// rank that waits for another inside a collective keeps a GPU busy with few threads too, and is
// straggler_rank's. Where steps wait for data it is left to data_starvation. False positives:
// models that are small on purpose; work that is bound by latency, such as reinforcement learning.
#include <algorithm>
#include <cmath>

#include "diagnose/activity.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"
#include "diagnose/stalls.h"

namespace epochmeter::diagnose {
namespace {

using model::Advice;
using model::Finding;
using model::Interval;
using model::Severity;

constexpr double kShortestJudged_s = 2;
constexpr double kLooksBusy = 0.5;  // utilisation that people take for work

struct Activity {
  int32_t gpu = -1;
  std::optional<double> utilization, sm, occupancy, power_w, power_limit_w;
  std::optional<double> PowerRatio() const {
    if (!power_w || !power_limit_w || *power_limit_w <= 0) return {};
    return *power_w / *power_limit_w;
  }
};

Activity ActivityOf(const Facts& facts, int32_t gpu, std::span<const Interval> judged) {
  return {.gpu = gpu,
          .utilization = MeanOver(facts, gpu, "utilization_ratio", judged),
          .sm = MeanOver(facts, gpu, "sm_active_ratio", judged),
          .occupancy = MeanOver(facts, gpu, "sm_occupancy_ratio", judged),
          .power_w = MeanOver(facts, gpu, "power_w", judged),
          .power_limit_w = PowerLimit(facts, gpu)};
}

// Steady steps less what idle_gpu and stalled_steps speak of; without steps the time since the GPU
// was first used.
std::vector<Interval> JudgedTime(const Facts& facts, int32_t gpu) {
  std::vector<Interval> holes = StalledTime(facts);
  const auto idle = IdleStretches(facts, gpu, facts.limits()["idle_gpu.utilization_ratio"],
                                  facts.limits()["idle_gpu.stretch_s"]);
  if (idle) holes.insert(holes.end(), idle->begin(), idle->end());
  return Without(SteadyOfAll(facts), Join(std::move(holes)));
}

// One that works for a rank and has the most to do.
std::optional<Activity> Busiest(const Facts& facts, bool* has_sm) {
  std::optional<Activity> busiest;
  for (const int32_t gpu : GpusOfJob(facts)) {
    const std::vector<Interval> judged = JudgedTime(facts, gpu);
    if (TotalSeconds(judged) < kShortestJudged_s) continue;
    const Activity activity = ActivityOf(facts, gpu, judged);
    if (!activity.sm && !(activity.utilization && activity.PowerRatio())) continue;
    *has_sm = *has_sm || activity.sm.has_value();
    const auto work = [](const Activity& of) {
      return of.sm.value_or(of.PowerRatio().value_or(0));
    };
    if (!busiest || work(activity) > work(*busiest)) busiest = activity;
  }
  return busiest;
}

std::vector<Advice> HowToFill(bool looks_busy) {
  const auto text =
      looks_busy
          ? Say("Give each kernel more work: larger batches, fused optimizers and attention, and a "
                "compiled model; profile a few steps to see the kernel that runs all the time.",
                "让每个内核做更多的工作：增大批次、使用融合的优化器和注意力、编译模型；"
                "对几步做性能剖析，找出一直在运行的内核。")
          : Say("Launch fewer and larger kernels: compile the model, capture its steps as CUDA "
                "graphs, raise the batch size, use a fused optimizer, and read values back from "
                "the GPU only every some steps.",
                "减少内核数量、增大单个内核：编译模型、用 CUDA Graph 捕获步骤、增大批次、"
                "使用融合优化器，并且每隔若干步才从 GPU 读取数值。");
  return {{.framework = "paddle",
           .text = text,
           .code = "model = paddle.jit.to_static(model, full_graph=True, backend=\"CINN\")\n"
                   "# and loss.numpy() or float(loss) only every 50 steps"},
          {.framework = "tensorflow",
           .text = text,
           .code = "@tf.function(jit_compile=True)\ndef train_step(x, y): ...\n"
                   "# Keras: model.compile(..., jit_compile=True, steps_per_execution=50)"},
          {.framework = "pytorch",
           .text = text,
           .code = "model = torch.compile(model, mode=\"reduce-overhead\")  # CUDA graphs\n"
                   "optimizer = torch.optim.AdamW(model.parameters(), fused=True)\n"
                   "# and loss.item() only every 50 steps"}};
}

void Explain(const Activity& activity, bool looks_busy, Finding* finding) {
  const std::string busy = SayPercent(activity.utilization.value_or(0));
  if (activity.sm) {
    finding->summary =
        activity.utilization
            ? Say("GPU {} reads {} busy, but its multiprocessors were active only {} of the time.",
                  "GPU {} 的利用率为 {}，但其流式多处理器只有 {} 的时间在工作。", activity.gpu,
                  busy, SayPercent(*activity.sm))
            : Say("The multiprocessors of GPU {} were active only {} of the time.",
                  "GPU {} 的流式多处理器只有 {} 的时间在工作。", activity.gpu,
                  SayPercent(*activity.sm));
  } else {
    finding->summary = Say("GPU {} reads {} busy but draws only {} of its power limit.",
                           "GPU {} 的利用率为 {}，但功率只有上限的 {}。", activity.gpu, busy,
                           SayPercent(activity.PowerRatio().value_or(0)));
  }
  finding->explanation =
      looks_busy
          ? Say("Utilisation counts the time in which any kernel runs, however small. Here kernels "
                "of few threads run for much of it, so the GPU looks busier than it is.",
                "利用率统计的是有任何内核在运行的时间，无论内核多小。这里大部分时间运行的"
                "是线程很少的内核，GPU 看起来比实际繁忙。")
          : Say("The steps do not wait for data: the GPU waits for the CPU to launch many tiny "
                "kernels one by one.",
                "步骤并未等待数据：GPU 在等待 CPU 逐个启动大量很小的内核。");
}

Finding FindingOf(const Facts& facts, const Activity& activity, Severity severity) {
  const bool looks_busy = activity.utilization.value_or(0) >= kLooksBusy;
  Finding finding;
  finding.severity = severity;
  if (GpusOfJob(facts).size() == 1) finding.gpu = activity.gpu;
  finding.confidence = activity.sm ? 0.95 : 0.6;
  Explain(activity, looks_busy, &finding);
  finding.advice = HowToFill(looks_busy);
  const std::vector<Interval> judged = JudgedTime(facts, activity.gpu);
  const model::Curve* curve =
      facts.GpuCurve(activity.gpu, activity.sm ? "sm_active_ratio" : "power_w");
  model::Evidence evidence{
      .series = curve != nullptr ? facts.SeriesName(*curve) : "gpu",
      .interval = {.begin_ns = judged.front().begin_ns, .end_ns = judged.back().end_ns},
      .values = {},
      .note = {},
      .steps = {}};
  const auto add = [&](const char* name, const std::optional<double>& value) {
    if (value) evidence.values.emplace_back(name, *value);
  };
  add("sm_active_ratio", activity.sm);
  add("utilization_ratio", activity.utilization);
  add("sm_occupancy_ratio", activity.occupancy);
  add("power_w", activity.power_w);
  add("power_limit_w", activity.power_limit_w);
  evidence.values.emplace_back("data_wait_ratio", WorstDataWaitRatio(facts));
  finding.evidence.push_back(std::move(evidence));
  return finding;
}

Judgement Judge(const Facts& facts) {
  const Limits& limits = facts.limits();
  bool has_sm = false;
  const std::optional<Activity> busiest = Busiest(facts, &has_sm);
  if (!busiest) {
    return NotApplicable(
        Say("no GPU of the job has SM activity, or utilisation and power with a "
            "limit, over steady steps",
            "在稳定的训练步骤期间，作业的 GPU 没有 SM 活动率，也没有带上限的功率和"
            "利用率"));
  }
  Judgement judgement;
  if (WorstDataWaitRatio(facts) >= limits["data_starvation.warning_ratio"]) return judgement;
  if (busiest->sm) {
    // Full by utilisation and nearly empty: someone who looks at nvidia-smi is misled.
    const double busy = busiest->utilization.value_or(0);
    const bool misleads = busy >= limits["low_sm_activity.full_ratio"] &&
                          *busiest->sm < limits["low_sm_activity.misleading_ratio"] * busy;
    if (*busiest->sm >= limits["low_sm_activity.info_ratio"] && !misleads) return judgement;
    const bool low = *busiest->sm < limits["low_sm_activity.warning_ratio"];
    judgement.findings.push_back(
        FindingOf(facts, *busiest, low ? Severity::kWarning : Severity::kInfo));
    return judgement;
  }
  // Without SM activity only a GPU that looks busy and draws next to nothing is told.
  const bool fake = busiest->utilization.value_or(0) >= limits["low_sm_activity.busy_ratio"] &&
                    *busiest->PowerRatio() < limits["low_sm_activity.power_ratio"];
  if (fake) judgement.findings.push_back(FindingOf(facts, *busiest, Severity::kWarning));
  return judgement;
}

}  // namespace

namespace rules {

const RuleDef kLowSmActivity = {
    .id = "low_sm_activity",
    .Title =
        [] { return Say("The GPU is in use but does little", "GPU 在使用中，但实际工作很少"); },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
