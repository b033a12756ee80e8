// SPDX-License-Identifier: Apache-2.0
// The job holds a GPU and gives it nothing to do for long stretches.
//
// Needs the utilisation of the job's GPUs. Idle is a stretch in which neither utilisation nor SM
// activity rises above the limit, after the first step (or the first use) and outside evaluation,
// checkpoints, compilation and stalls, which have rules of their own. False positives: a CPU phase
// that belongs to the job, such as building an index or an interactive session; where steps wait
// for data all of that time, it is left to data_starvation. What a process does for a short while
// after its training (saving, waiting for its workers) is no fault.
#include <algorithm>
#include <limits>

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

constexpr size_t kMostListed = 5;
constexpr double kMostlyWaiting = 0.5;  // of the steps' time: then data explains the rest

struct IdleGpu {
  int32_t gpu = -1;
  std::vector<Interval> stretches;
  double idle_s = 0, watched_s = 0;
  bool used = true;  // it had work at some time
  double Ratio() const { return watched_s > 0 ? idle_s / watched_s : 0; }
};

// When the training was under way: the first step taken, else the first use of the GPU, else the
// beginning of the recording.
int64_t UnderWayNs(const Facts& facts, const model::Curve& utilization, double limit) {
  std::optional<int64_t> first;
  for (const RankFacts& rank : facts.ranks()) {
    if (rank.steps.empty()) continue;
    const int64_t t_ns = rank.steps.front().end_ns;
    first = std::min(first.value_or(t_ns), t_ns);
  }
  if (first) return *first;
  for (size_t i = 0; i < utilization.points.t_ns.size(); ++i) {
    if (utilization.points.value[i] > limit) return utilization.points.t_ns[i];
  }
  return facts.run().Recorded().begin_ns;
}

// Whether the run says that the GPU is the job's: then it counts though no process is on it.
bool IsNamed(const Facts& facts, int32_t gpu) {
  return std::any_of(
      facts.report().gpus.begin(), facts.report().gpus.end(),
      [gpu](const model::GpuStats& stats) { return stats.gpu == gpu && stats.of_job == true; });
}

// Of the job's processes on this GPU, where the driver lists them, else of all.
bool HoldsMemory(const Facts& facts, int32_t gpu, const Interval& stretch) {
  for (const char* field : {"own_memory_bytes", "process_memory_bytes", "memory_used_bytes"}) {
    const std::optional<double> held = MeanOver(facts, gpu, field, std::span(&stretch, 1));
    if (held) return *held > 0;
  }
  return true;
}

// From when all ranks have ended their training to the end of the recording; empty when one did
// not, or when there are none.
std::vector<Interval> AfterTraining(const Facts& facts) {
  Interval after{.begin_ns = std::numeric_limits<int64_t>::min(),
                 .end_ns = facts.run().Recorded().end_ns};
  for (const RankFacts& rank : facts.ranks()) {
    if (!rank.ended) return {};
    after.begin_ns = std::max(after.begin_ns, rank.training.end_ns);
  }
  if (facts.ranks().empty() || after.end_ns <= after.begin_ns) return {};
  return {after};
}

// Everything that other rules speak of, and the short while that a process takes to end.
std::vector<Interval> Excused(const Facts& facts) {
  std::vector<Interval> excused = PhasesOfAll(facts);
  const std::vector<Interval> after = AfterTraining(facts);
  if (TotalSeconds(after) < facts.limits()["idle_gpu.after_training_s"]) {
    excused.insert(excused.end(), after.begin(), after.end());
  }
  const std::vector<Interval> stalled = StalledTime(facts);
  excused.insert(excused.end(), stalled.begin(), stalled.end());
  if (WorstDataWaitRatio(facts) >= kMostlyWaiting) {
    const std::vector<Interval> steady = SteadyOfAll(facts);
    excused.insert(excused.end(), steady.begin(), steady.end());
  }
  return Join(std::move(excused));
}

std::optional<IdleGpu> JudgeGpu(const Facts& facts, int32_t gpu,
                                std::span<const Interval> excused) {
  const model::Curve* utilization = facts.GpuCurve(gpu, "utilization_ratio");
  if (utilization == nullptr || utilization->points.t_ns.empty()) return {};
  const double limit = facts.limits()["idle_gpu.utilization_ratio"];
  const double shortest_s = facts.limits()["idle_gpu.stretch_s"];
  IdleGpu idle{.gpu = gpu};
  const Interval watched{
      .begin_ns = std::max(UnderWayNs(facts, *utilization, limit), facts.run().Recorded().begin_ns),
      .end_ns = std::min(utilization->points.t_ns.back(), facts.run().Recorded().end_ns)};
  if (watched.end_ns <= watched.begin_ns) return {};
  const std::vector<Interval> judged = Without(std::span(&watched, 1), excused);
  idle.watched_s = TotalSeconds(std::span(&watched, 1));
  const auto stretches = IdleStretches(facts, gpu, limit, shortest_s);
  if (!stretches) return {};
  const model::Summary ever = Sum(*utilization, std::span(&watched, 1));
  idle.used = ever.count == 0 || ever.max > limit;
  for (const Interval& part : Overlap(Join(*stretches), judged)) {
    if (TotalSeconds(std::span(&part, 1)) < shortest_s) continue;
    const bool held = (!idle.used && IsNamed(facts, gpu)) || HoldsMemory(facts, gpu, part);
    if (held) idle.stretches.push_back(part);
  }
  idle.idle_s = TotalSeconds(idle.stretches);
  return idle;
}

std::vector<Advice> HowToRelease(bool used) {
  const auto text =
      used ? Say("End the process when its work on the GPU is done, and move long work of the CPU "
                 "to a job without a GPU; inside the process, at least give the memory back.",
                 "GPU 工作结束后应结束进程，把长时间的 CPU 工作放到不占用 GPU 的作业中；"
                 "若进程必须保留，至少释放显存。")
           : Say("Check that the framework sees this GPU, or ask for fewer GPUs.",
                 "检查框架是否能看到该 GPU，或者申请更少的 GPU。");
  return {{.framework = "paddle",
           .text = text,
           .code = used ? "del model, optimizer; paddle.device.cuda.empty_cache()"
                        : "paddle.is_compiled_with_cuda(), paddle.device.cuda.device_count()"},
          {.framework = "tensorflow",
           .text = text,
           .code = used ? "# TensorFlow keeps its memory until the process ends: end it"
                        : "tf.config.list_physical_devices('GPU')"},
          {.framework = "pytorch",
           .text = text,
           .code = used ? "del model, optimizer; torch.cuda.empty_cache()"
                        : "torch.cuda.is_available(), torch.cuda.device_count()"}};
}

model::Evidence EvidenceOf(const Facts& facts, const IdleGpu& idle, const Interval& stretch) {
  const model::Curve* curve = facts.GpuCurve(idle.gpu, "utilization_ratio");
  const std::span<const Interval> one(&stretch, 1);
  model::Evidence evidence{.series = facts.SeriesName(*curve),
                           .interval = stretch,
                           .values = {{"idle_s", TotalSeconds(one)}},
                           .note = {},
                           .steps = {}};
  for (const char* field : {"utilization_ratio", "sm_active_ratio", "power_w", "own_memory_bytes",
                            "memory_used_bytes"}) {
    const std::optional<double> mean = MeanOver(facts, idle.gpu, field, one);
    if (mean) evidence.values.emplace_back(field, *mean);
  }
  return evidence;
}

double LongestSeconds(const IdleGpu& idle) {
  double longest_s = 0;
  for (const Interval& stretch : idle.stretches) {
    longest_s = std::max(longest_s, TotalSeconds(std::span(&stretch, 1)));
  }
  return longest_s;
}

model::Message Summary(const std::vector<IdleGpu>& gpus, const IdleGpu& worst, double idle_s) {
  if (gpus.size() == 1) {
    return Say(
        "GPU {} did nothing for {} of {} ({}) while the job held it, up to {} at a stretch: "
        "{} GPU hours.",
        "作业占用 GPU {} 期间，它在 {}/{}（{}）内没有工作，最长连续 {}，合 {} GPU 小时。",
        worst.gpu, SaySeconds(worst.idle_s), SaySeconds(worst.watched_s), SayPercent(worst.Ratio()),
        SaySeconds(LongestSeconds(worst)), SayNumber(idle_s / 3600));
  }
  return Say(
      "{} of the job's GPUs did nothing for long, together {} GPU hours; GPU {} most: {} of "
      "{} ({}), up to {} at a stretch.",
      "作业的 {} 块 GPU 长时间没有工作，共 {} GPU 小时；最严重的是 GPU {}：{}/{}（{}），"
      "最长连续 {}。",
      gpus.size(), SayNumber(idle_s / 3600), worst.gpu, SaySeconds(worst.idle_s),
      SaySeconds(worst.watched_s), SayPercent(worst.Ratio()), SaySeconds(LongestSeconds(worst)));
}

Finding FindingOf(const Facts& facts, const std::vector<IdleGpu>& gpus) {
  const IdleGpu& worst =
      *std::max_element(gpus.begin(), gpus.end(),
                        [](const IdleGpu& a, const IdleGpu& b) { return a.idle_s < b.idle_s; });
  double idle_s = 0;
  for (const IdleGpu& gpu : gpus) idle_s += gpu.idle_s;
  const Limits& limits = facts.limits();
  Finding finding;
  const bool much = worst.Ratio() >= limits["idle_gpu.warning_ratio"] ||
                    worst.idle_s >= limits["idle_gpu.warning_s"];
  finding.severity = much ? Severity::kWarning : Severity::kInfo;
  if (gpus.size() == 1) finding.gpu = worst.gpu;
  finding.confidence = facts.GpuCurve(worst.gpu, "sm_active_ratio") != nullptr ? 0.95 : 0.85;
  finding.summary = Summary(gpus, worst, idle_s);
  finding.explanation =
      worst.used ? Say("No kernel ran in these stretches though the job held the GPU. Start-up, "
                       "evaluation, checkpoints and stalls are not counted here.",
                       "这些时段内作业占着 GPU，却没有任何内核在运行。启动、评估、保存检查点和停滞"
                       "不计算在内。")
                 : Say("The GPU is the job's but it never ran a kernel.",
                       "该 GPU 属于本作业，但从未运行过内核。");
  finding.advice = HowToRelease(worst.used);
  finding.lost_gpu_s = idle_s;
  for (const IdleGpu& gpu : gpus) {
    std::vector<Interval> shown = gpu.stretches;
    std::stable_sort(shown.begin(), shown.end(), [](const Interval& a, const Interval& b) {
      return a.end_ns - a.begin_ns > b.end_ns - b.begin_ns;
    });
    if (shown.size() > kMostListed) shown.resize(kMostListed);
    for (const Interval& stretch : shown) {
      finding.evidence.push_back(EvidenceOf(facts, gpu, stretch));
    }
  }
  return finding;
}

Judgement Judge(const Facts& facts) {
  const std::vector<Interval> excused = Excused(facts);
  std::vector<IdleGpu> idle;
  bool any = false;
  for (const int32_t gpu : GpusOfJob(facts)) {
    std::optional<IdleGpu> judged = JudgeGpu(facts, gpu, excused);
    if (!judged) continue;
    any = true;
    const double least_s = facts.limits()["idle_gpu.stretch_s"];
    const bool noted = judged->Ratio() >= facts.limits()["idle_gpu.warning_ratio"] ||
                       judged->idle_s >= facts.limits()["idle_gpu.info_s"];
    if (judged->idle_s >= least_s && noted) idle.push_back(std::move(*judged));
  }
  if (!any) {
    return NotApplicable(
        Say("the utilisation of the job's GPUs was not recorded", "没有记录作业所用 GPU 的利用率"));
  }
  Judgement judgement;
  if (!idle.empty()) judgement.findings.push_back(FindingOf(facts, idle));
  return judgement;
}

}  // namespace

namespace rules {

const RuleDef kIdleGpu = {
    .id = "idle_gpu",
    .Title = [] { return Say("The job holds a GPU that does nothing", "作业占用的 GPU 空闲"); },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
