// SPDX-License-Identifier: Apache-2.0
// The CPU is full while the GPU has little to do.
//
// Needs the utilisation of the job's GPUs over steady steps, and the CPU time of the host, of the
// job's cgroup with its quota, or of the run's processes. A host or quota that is full is a
// warning; one core's worth of work a rank while the GPU waits is only remarked on, because a
// thread that waits for the GPU spins as well. Where data_starvation or low_sm_activity give the
// reason it only remarks. False positives: CPU work of others on the same host.
#include <algorithm>

#include "diagnose/activity.h"
#include "diagnose/evidence.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"

namespace epochmeter::diagnose {
namespace {

using model::Advice;
using model::Finding;
using model::Interval;
using model::Severity;

// CPU time of a process whose one thread never rests, in cores.
constexpr double kOneCore = 0.9, kOneCoreMost = 1.3;

struct CpuUse {
  std::optional<double> host_ratio, quota_ratio, throttled_cores, cores_per_rank;
  std::string series;
};

CpuUse UseOf(const Facts& facts, std::span<const Interval> judged) {
  CpuUse use;
  use.host_ratio = MeanOver(facts, facts.HostCurve("cpu_ratio"), judged);
  const auto in_cgroup = [&](const char* field) {
    return MeanOver(facts, facts.FirstCurve(model::Scope::kCgroup, field), judged);
  };
  const auto used = in_cgroup("cpu_usage_cores");
  const auto quota = in_cgroup("cpu_quota_cores");
  if (used && quota && *quota > 0) use.quota_ratio = *used / *quota;
  use.throttled_cores = in_cgroup("cpu_throttled_cores");
  const auto tree = MeanOver(facts, facts.TreeCurve("cpu_cores"), judged);
  if (tree) {
    use.cores_per_rank = *tree / static_cast<double>(std::max<size_t>(facts.ranks().size(), 1));
  }
  return use;
}

std::vector<Advice> HowToUnload(bool one_core) {
  if (one_core) {
    return {{.framework = "paddle",
             .text = Say("Take work off the Python thread: compile the model, and read values back "
                         "less often.",
                         "减轻 Python 线程的负担：编译模型，减少从 GPU 读取数值的次数。"),
             .code = "model = paddle.jit.to_static(model, full_graph=True)"},
            {.framework = "tensorflow",
             .text = Say("Run whole steps as a graph, several at a time.",
                         "以计算图方式执行整个步骤，一次多步。"),
             .code = "model.compile(..., jit_compile=True, steps_per_execution=50)"},
            {.framework = "pytorch",
             .text = Say("Take work off the Python thread: compile the model, and read values back "
                         "less often.",
                         "减轻 Python 线程的负担：编译模型，减少从 GPU 读取数值的次数。"),
             .code = "model = torch.compile(model, mode=\"reduce-overhead\")"}};
  }
  return {
      {.framework = {},
       .text = Say("Ask for more CPUs, or do less on them: decode and augment on the GPU, store "
                   "data decoded or smaller, and let no other work run beside the training.",
                   "申请更多 CPU，或减少 CPU 上的工作：在 GPU 上解码和增强，存储已解码或更小的"
                   "数据，并避免在训练旁运行其他任务。"),
       .code = {}}};
}

Finding FindingOf(const Facts& facts, const CpuUse& use, bool full, double busy,
                  std::span<const Interval> judged) {
  const model::Message why = WhyLittleWork(facts);
  Finding finding;
  finding.severity = full && why.empty() ? Severity::kWarning : Severity::kInfo;
  finding.confidence = full ? 0.8 : 0.5;
  std::string series = "tree cpu_cores";
  if (!full) {
    finding.summary =
        Say("Each rank keeps {} CPU cores busy, about one thread, while the GPUs are "
            "used {}.",
            "每个 rank 占用 {} 个 CPU 核心，约等于一个线程，而 GPU 利用率为 {}。",
            SayNumber(*use.cores_per_rank), SayPercent(busy));
    finding.explanation =
        Say("One thread may be all that launches work for the GPU; it may also only spin while it "
            "waits for it.",
            "可能只有一个线程在为 GPU 提交工作；也可能它只是在自旋等待 GPU。");
  } else if (use.quota_ratio.value_or(0) > use.host_ratio.value_or(0)) {
    series = "cgroup cpu_usage_cores";
    finding.summary = Say("The job uses {} of its CPU quota while its GPUs are used {}.",
                          "作业用掉了 CPU 配额的 {}，而 GPU 利用率为 {}。",
                          SayPercent(*use.quota_ratio), SayPercent(busy));
  } else {
    series = "host cpu_ratio";
    finding.summary = Say("The host's CPUs are {} busy while the GPUs are used {}.",
                          "主机 CPU 利用率为 {}，而 GPU 利用率为 {}。", SayPercent(*use.host_ratio),
                          SayPercent(busy));
  }
  if (full) {
    finding.explanation = Say("Steady steps only; the GPUs wait for the CPU.",
                              "仅统计稳定的训练步骤；GPU 在等待 CPU。");
  }
  if (!why.empty()) finding.explanation = why;
  finding.advice = HowToUnload(!full);
  model::Evidence evidence = BusyEvidence(series, judged, busy);
  PutKnown("host_cpu_ratio", use.host_ratio, &evidence.values);
  PutKnown("quota_used_ratio", use.quota_ratio, &evidence.values);
  PutKnown("throttled_cores", use.throttled_cores, &evidence.values);
  PutKnown("cores_per_rank", use.cores_per_rank, &evidence.values);
  finding.evidence.push_back(std::move(evidence));
  return finding;
}

Judgement Judge(const Facts& facts) {
  const std::vector<Interval> judged = WorkingTime(facts);
  const auto busy = MeanOver(facts, GpusOfJob(facts), "utilization_ratio", judged);
  const CpuUse use = UseOf(facts, judged);
  if (!busy || !(use.host_ratio || use.quota_ratio || use.cores_per_rank)) {
    return NotApplicable(Say("needs the utilisation of GPUs and the use of CPUs over steady steps",
                             "需要稳定步骤期间的 GPU 利用率和 CPU 使用情况"));
  }
  Judgement judgement;
  if (*busy >= facts.limits()["cpu_bound.utilization_ratio"]) return judgement;
  const double full_ratio = facts.limits()["cpu_bound.busy_ratio"];
  const bool full = std::max(use.host_ratio.value_or(0), use.quota_ratio.value_or(0)) >= full_ratio;
  const double cores = use.cores_per_rank.value_or(0);
  if (full || (cores >= kOneCore && cores <= kOneCoreMost)) {
    judgement.findings.push_back(FindingOf(facts, use, full, *busy, judged));
  }
  return judgement;
}

}  // namespace

namespace rules {

const RuleDef kCpuBound = {
    .id = "cpu_bound",
    .Title = [] { return Say("The CPU holds the GPU up", "CPU 拖慢了 GPU"); },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
