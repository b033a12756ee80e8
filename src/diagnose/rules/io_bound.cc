// SPDX-License-Identifier: Apache-2.0
// The run's processes wait for storage while the GPU has little to do.
//
// Needs the utilisation of the job's GPUs over steady steps, and pressure stall information of the
// job's cgroup or the host, or the host's iowait. Where data_starvation gives the reason it only
// remarks. False positives: I/O of others on the same host. Network file systems do not show in
// iowait, and not always in pressure: silence is no proof.
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

struct Waits {
  std::optional<double> waiting, stalled, iowait, read_bytes_per_s;
  std::string series;
};

Waits WaitsOf(const Facts& facts, std::span<const Interval> judged) {
  Waits waits;
  for (const model::Scope scope : {model::Scope::kCgroup, model::Scope::kHost}) {
    const model::Curve* waiting = facts.FirstCurve(scope, "pressure_io_waiting_ratio");
    const model::Curve* stalled = facts.FirstCurve(scope, "pressure_io_stalled_ratio");
    waits.waiting = MeanOver(facts, waiting, judged);
    waits.stalled = MeanOver(facts, stalled, judged);
    if (!waits.waiting) continue;
    waits.series = facts.SeriesName(*waiting);
    break;
  }
  const model::Curve* iowait = facts.HostCurve("iowait_ratio");
  waits.iowait = MeanOver(facts, iowait, judged);
  if (waits.series.empty() && iowait != nullptr) waits.series = facts.SeriesName(*iowait);
  waits.read_bytes_per_s = MeanOver(facts, facts.TreeCurve("read_bytes_per_s"), judged);
  return waits;
}

std::vector<Advice> HowToRead() {
  return {{.framework = {},
           .text = Say("Keep the data on a local disk or in memory, store many samples in one file "
                       "and read them in order, and let workers read ahead.",
                       "把数据放在本地磁盘或内存中，把大量样本存入同一文件并顺序读取，"
                       "让加载进程提前读取。"),
           .code = {}}};
}

Finding FindingOf(const Facts& facts, const Waits& waits, double busy,
                  std::span<const Interval> judged) {
  const model::Message why = WhyLittleWork(facts);
  Finding finding;
  finding.severity = why.empty() ? Severity::kWarning : Severity::kInfo;
  finding.confidence = waits.waiting ? 0.8 : 0.6;
  finding.summary =
      waits.waiting
          ? Say("Processes waited for storage in {} of the time while the GPUs were used {}.",
                "有 {} 的时间进程在等待存储，而 GPU 利用率为 {}。", SayPercent(*waits.waiting),
                SayPercent(busy))
          : Say("CPUs waited for storage in {} of their time while the GPUs were used {}.",
                "CPU 有 {} 的时间在等待存储，而 GPU 利用率为 {}。", SayPercent(*waits.iowait),
                SayPercent(busy));
  finding.explanation = why.empty() ? Say("Steady steps only.", "仅统计稳定的训练步骤。") : why;
  finding.advice = HowToRead();
  model::Evidence evidence = BusyEvidence(waits.series, judged, busy);
  PutKnown("io_waiting_ratio", waits.waiting, &evidence.values);
  PutKnown("io_stalled_ratio", waits.stalled, &evidence.values);
  PutKnown("iowait_ratio", waits.iowait, &evidence.values);
  PutKnown("read_bytes_per_s", waits.read_bytes_per_s, &evidence.values);
  finding.evidence.push_back(std::move(evidence));
  return finding;
}

Judgement Judge(const Facts& facts) {
  const std::vector<Interval> judged = WorkingTime(facts);
  const auto busy = MeanOver(facts, GpusOfJob(facts), "utilization_ratio", judged);
  const Waits waits = WaitsOf(facts, judged);
  if (!busy || !(waits.waiting || waits.iowait)) {
    return NotApplicable(
        Say("needs the utilisation of GPUs and I/O pressure or iowait over steady "
            "steps",
            "需要稳定步骤期间的 GPU 利用率，以及 I/O 压力或 iowait"));
  }
  Judgement judgement;
  const Limits& limits = facts.limits();
  const bool waits_much = waits.waiting.value_or(0) >= limits["io_bound.waiting_ratio"] ||
                          waits.stalled.value_or(0) >= limits["io_bound.stalled_ratio"] ||
                          waits.iowait.value_or(0) >= limits["io_bound.waiting_ratio"];
  if (*busy < limits["io_bound.utilization_ratio"] && waits_much) {
    judgement.findings.push_back(FindingOf(facts, waits, *busy, judged));
  }
  return judgement;
}

}  // namespace

namespace rules {

const RuleDef kIoBound = {.id = "io_bound",
                          .Title = [] { return Say("Storage holds the GPU up", "存储拖慢了 GPU"); },
                          .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
