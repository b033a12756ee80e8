// SPDX-License-Identifier: Apache-2.0
// Device memory on the job's GPUs that is not the job's: of processes that are left over from an
// earlier run or that somebody else started, or of no process that the driver lists.
//
// Needs the driver's list of processes on a GPU of the job, with its owners (others_memory_bytes)
// or what the list does not explain (unexplained_memory_bytes, else used less listed). What is not
// explained must last: a process that ends frees its memory after it has left the list. False
// positives: a GPU that is shared on purpose, a desktop; where the driver lists this container
// only, memory of other containers has no process.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "diagnose/memory.h"
#include "diagnose/own_gpus.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"

namespace epochmeter::diagnose {
namespace {

using model::Curve;
using model::Evidence;
using model::Finding;
using model::Severity;

constexpr size_t kMostProcesses = 8;  // that evidence names
constexpr size_t kFewestSamples = 3;  // of memory without a process

// A stretch of samples that are all at least some level.
struct Stretch {
  model::Interval interval{0, 0};
  size_t samples = 0;
  double lowest = 0, highest = 0;
  double Seconds() const { return base::SecondsFromNs(interval.end_ns - interval.begin_ns); }
};

// The longest one, by time.
Stretch LongestAbove(const model::SeriesColumn& points, double least) {
  Stretch longest, now;
  const auto keep = [&] {
    if (now.samples > 0 && (longest.samples == 0 || now.Seconds() >= longest.Seconds())) {
      longest = now;
    }
    now = {};
  };
  for (size_t i = 0; i < points.t_ns.size(); ++i) {
    const double value = points.value[i];
    if (model::IsAbsent(value)) continue;  // a hole tells nothing of either side
    if (!(value >= least) || !std::isfinite(value)) {
      keep();
      continue;
    }
    if (now.samples++ == 0) now = {{points.t_ns[i], points.t_ns[i]}, 1, value, value};
    now.interval.end_ns = points.t_ns[i];
    now.lowest = std::min(now.lowest, value);
    now.highest = std::max(now.highest, value);
  }
  keep();
  return longest;
}

// Used less listed, at the instants of the list.
model::SeriesColumn NotListed(const Curve& used, const Curve& listed) {
  model::SeriesColumn rest;
  size_t at = 0;
  for (size_t i = 0; i < listed.points.t_ns.size(); ++i) {
    const int64_t t_ns = listed.points.t_ns[i];
    while (at + 1 < used.points.t_ns.size() && used.points.t_ns[at + 1] <= t_ns) ++at;
    if (at >= used.points.t_ns.size() || used.points.t_ns[at] > t_ns) continue;
    const double value = used.points.value[at] - listed.points.value[i];
    if (!std::isfinite(value)) continue;
    rest.t_ns.push_back(t_ns);
    rest.value.push_back(std::max(0.0, value));
  }
  return rest;
}

// Memory of no listed process; empty when that can't be known.
model::SeriesColumn Unexplained(const Facts& facts, int32_t gpu) {
  const Curve* told = facts.GpuCurve(gpu, "unexplained_memory_bytes");
  if (told != nullptr) return told->points;
  const Curve* used = facts.GpuCurve(gpu, "memory_used_bytes");
  const Curve* listed = facts.GpuCurve(gpu, "process_memory_bytes");
  if (used == nullptr || listed == nullptr) return {};
  return NotListed(*used, *listed);
}

// Processes on the GPU that are known to be none of the job's, the largest first.
std::vector<std::pair<std::string, double>> OtherProcesses(const Facts& facts, int32_t gpu) {
  std::vector<std::pair<std::string, double>> found;
  for (const model::EntityDef& entity : facts.run().entities) {
    if (entity.scope != model::Scope::kProcess) continue;
    if (Find(entity.labels, "gpu") != std::to_string(gpu)) continue;
    if (Find(entity.attributes, "owner") != "other") continue;
    const auto bytes = HighestOf(facts.FindCurve(entity.id, "gpu_memory_bytes"));
    if (bytes) found.emplace_back(std::string(Find(entity.labels, "pid")), *bytes);
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
  if (found.size() > kMostProcesses) found.resize(kMostProcesses);
  return found;
}

struct Foreign {
  int32_t gpu = -1;
  bool listed = false;  // by processes that are not the job's, else by none
  Stretch stretch;
  std::optional<double> ratio;  // of the device
};

model::Message Part(const Foreign& foreign) {
  if (!foreign.ratio) return {};
  const std::string part = SayPercent(*foreign.ratio);
  return Say(" ({} of the device)", "（占该设备的 {}）", part);
}

std::vector<model::Advice> HowToFree(const std::vector<std::pair<std::string, double>>& pids) {
  std::string look = "nvidia-smi --query-compute-apps=pid,used_memory --format=csv\n";
  look += pids.empty() ? "fuser -v /dev/nvidia*" : "ps -o pid,ppid,user,etime,cmd -p";
  for (size_t i = 0; i < pids.size(); ++i) look += (i == 0 ? " " : ",") + pids[i].first;
  return {
      {.framework = "",
       .text = Say("See whose they are. Workers of a run that died are left over: end those by "
                   "their id, and only yours. A neighbour needs another GPU.",
                   "先查明这些进程属于谁。已退出训练遗留的工作进程可按进程号结束，但只结束自己的"
                   "；若是他人的任务，请换用其他 GPU。"),
       .code = look}};
}

Finding Found(const Facts& facts, const Foreign& foreign) {
  const auto pids = foreign.listed ? OtherProcesses(facts, foreign.gpu)
                                   : std::vector<std::pair<std::string, double>>{};
  Finding finding;
  const bool much = foreign.ratio.value_or(0) >= facts.limits()["zombie_gpu_memory.warning_ratio"];
  finding.severity = much ? Severity::kWarning : Severity::kInfo;
  finding.gpu = foreign.gpu;
  finding.confidence = foreign.listed ? 0.95 : 0.7;
  const double bytes = foreign.listed ? foreign.stretch.highest : foreign.stretch.lowest;
  const model::Message part = Part(foreign);
  finding.summary =
      foreign.listed
          ? Say("Processes that are not of this job hold {} on GPU {}",
                "不属于本作业的进程在 GPU {1} 上占用了 {0}", SayBytes(bytes), foreign.gpu)
          : Say("{} on GPU {} are held by no process that the driver lists",
                "GPU {1} 上有 {0} 显存不属于驱动列出的任何进程", SayBytes(bytes), foreign.gpu);
  finding.summary.en += part.en + ".";
  finding.summary.zh += part.zh + "。";
  finding.explanation =
      foreign.listed
          ? Say("The driver lists them for {}; who is the job's is known by its process tree. A "
                "GPU "
                "that is shared on purpose looks the same.",
                "驱动在 {} 内列出了它们；本作业的进程由进程树得知。有意共享的 GPU 看起来也是如此。",
                SaySeconds(foreign.stretch.Seconds()))
          : Say("It was so for {} at a time. A process that died without freeing it, or one of "
                "another container, looks like this.",
                "该状态持续了 {}。进程异常退出而未释放，或属于其他容器的进程，都会如此。",
                SaySeconds(foreign.stretch.Seconds()));
  finding.advice = HowToFree(pids);
  const std::string field = foreign.listed ? "others_memory_bytes" : "unexplained_memory_bytes";
  Evidence evidence{.series = fmt::format("gpu{} {}", foreign.gpu, field),
                    .interval = foreign.stretch.interval,
                    .values = {{"highest_bytes", foreign.stretch.highest},
                               {"lowest_bytes", foreign.stretch.lowest},
                               {"lasted_s", foreign.stretch.Seconds()}}};
  if (foreign.ratio) evidence.values.emplace_back("device_ratio", *foreign.ratio);
  for (const auto& [pid, held] : pids) evidence.values.emplace_back("pid" + pid + "_bytes", held);
  finding.evidence.push_back(std::move(evidence));
  return finding;
}

void JudgeGpu(const Facts& facts, int32_t gpu, bool* any, std::vector<Finding>* findings) {
  const double least = facts.limits()["zombie_gpu_memory.least_bytes"];
  const auto room = RoomOf(facts, gpu);
  const auto add = [&](Foreign foreign) {
    const double bytes = foreign.listed ? foreign.stretch.highest : foreign.stretch.lowest;
    if (room && room->limit_bytes > 0) foreign.ratio = bytes / room->limit_bytes;
    findings->push_back(Found(facts, foreign));
  };
  if (const Curve* others = facts.GpuCurve(gpu, "others_memory_bytes")) {
    *any = true;
    const Stretch stretch = LongestAbove(others->points, least);
    if (stretch.samples > 0) add({.gpu = gpu, .listed = true, .stretch = stretch});
  }
  const model::SeriesColumn unexplained = Unexplained(facts, gpu);
  if (unexplained.t_ns.empty()) return;
  *any = true;
  const Stretch stretch = LongestAbove(unexplained, least);
  if (stretch.samples < kFewestSamples) return;
  if (stretch.Seconds() < facts.limits()["zombie_gpu_memory.lasting_s"]) return;
  add({.gpu = gpu, .listed = false, .stretch = stretch});
}

Judgement Judge(const Facts& facts) {
  Judgement judgement;
  bool any = false;
  for (const model::GpuStats& gpu : facts.report().gpus) {
    if (gpu.of_job.value_or(false)) JudgeGpu(facts, gpu.gpu, &any, &judgement.findings);
  }
  if (any) return judgement;
  return NotApplicable(Say(
      "no GPU that is known to be the job's has the driver's list of processes and their memory",
      "没有任何已知属于本作业的 GPU 带有驱动的进程列表及其显存"));
}

}  // namespace

namespace rules {

const RuleDef kZombieGpuMemory = {
    .id = "zombie_gpu_memory",
    .Title = [] { return Say("Others hold memory on the job's GPU", "其他进程占用作业的显存"); },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
