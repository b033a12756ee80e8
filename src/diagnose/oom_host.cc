// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "diagnose/oom_finding.h"

namespace epochmeter::diagnose {
namespace {

using model::Curve;
using model::Finding;
using model::Scope;

constexpr int kSigkill = 9;
constexpr int kShellSigkill = 128 + kSigkill;

bool WasKilled(const model::Run& run) {
  return run.end && (run.end->signal == kSigkill || run.end->exit_code == kShellSigkill);
}

// What the job's processes held, by the best figure there is.
const Curve* HeldCurve(const Facts& facts) {
  for (const char* field : {"memory_anon_bytes", "memory_working_set_bytes"}) {
    if (const Curve* curve = facts.FirstCurve(Scope::kCgroup, field)) return curve;
  }
  for (const char* field : {"pss_bytes", "anon_bytes", "rss_bytes"}) {
    if (const Curve* curve = facts.TreeCurve(field)) return curve;
  }
  return nullptr;
}

struct HostLimit {
  double bytes = 0;
  double used_bytes = 0;  // the highest
};

std::optional<HostLimit> LimitOf(const Facts& facts) {
  const auto limit = LastOf(facts.FirstCurve(Scope::kCgroup, "memory_limit_bytes"));
  const auto working = HighestOf(facts.FirstCurve(Scope::kCgroup, "memory_working_set_bytes"));
  if (limit && working) return HostLimit{.bytes = *limit, .used_bytes = *working};
  const auto total = LastOf(facts.HostCurve("memory_total_bytes"));
  const auto used = HighestOf(facts.HostCurve("memory_used_bytes"));
  if (total && used) return HostLimit{.bytes = *total, .used_bytes = *used};
  return {};
}

std::vector<model::Advice> HowToFit() {
  const model::Message workers =
      Say("Use fewer loader workers and a shorter prefetch: each worker holds its own batches and, "
          "in the end, its own copy of Python lists.",
          "减少加载进程和预取：每个进程都持有自己的批次，最终还会各自复制 Python 列表。");
  return {{.framework = "paddle",
           .text = workers,
           .code = "paddle.io.DataLoader(dataset, num_workers=2, prefetch_factor=2)"},
          {.framework = "tensorflow",
           .text = Say("Shorten shuffle and prefetch buffers, and do not cache in memory.",
                       "缩短 shuffle 和 prefetch 缓冲区，不要在内存中缓存。"),
           .code = "ds.shuffle(1000).prefetch(2)  # ds.cache('/path') instead of ds.cache()"},
          {.framework = "pytorch",
           .text = workers,
           .code = "DataLoader(dataset, num_workers=2, prefetch_factor=2)"},
          {.framework = "",
           .text = Say("Or give the job a higher memory limit.", "或为作业设置更高的内存上限。"),
           .code = "sbatch --mem=64G   # docker run --memory=64g"}};
}

}  // namespace

std::optional<Finding> HostOomFinding(const Facts& facts) {
  const model::Run& run = facts.run();
  const std::string& cgroup = facts.report().oom_cgroup;
  const auto limit = LimitOf(facts);
  const bool full =
      limit && limit->used_bytes >= facts.limits()["out_of_memory.host_full_ratio"] * limit->bytes;
  if (cgroup.empty() && !(WasKilled(run) && full)) return {};
  Finding finding;
  finding.severity = model::Severity::kCritical;
  finding.confidence = cgroup.empty() ? 0.6 : 0.97;
  finding.summary =
      cgroup.empty()
          ? Say("The training was killed while its memory was full: {} of {}.",
                "训练在内存已满时被杀死：{} / {}。", SayBytes(limit->used_bytes),
                SayBytes(limit->bytes))
          : Say("The kernel killed a process of the training for want of host memory, in cgroup "
                "{}.",
                "内核因主机内存不足杀死了训练的进程，cgroup：{}。", cgroup);
  finding.explanation =
      cgroup.empty() ? Say("No kill was told by the kernel; that it was for memory is inferred.",
                           "内核没有报告杀死进程的原因；这是推断。")
                     : Say("Told by the cgroup's counter of kills at the end of the training.",
                           "由训练结束时 cgroup 的 OOM 计数得知。");
  finding.advice = HowToFit();
  model::Evidence evidence{.interval = run.Recorded()};
  if (const Curve* curve = HeldCurve(facts)) {
    evidence.series = facts.SeriesName(*curve);
    if (const auto last = LastOf(curve)) evidence.values.emplace_back("last_bytes", *last);
    if (const auto high = HighestOf(curve)) evidence.values.emplace_back("max_bytes", *high);
  }
  if (limit) evidence.values.emplace_back("limit_bytes", limit->bytes);
  for (const RankFacts& rank : facts.ranks()) {
    if (facts.ranks().size() > 1 || rank.steps.empty()) break;
    finding.rank = rank.rank;
    evidence.steps.push_back(StepNumber(rank.steps.back(), rank.steps.size()) + 1);
  }
  finding.evidence.push_back(std::move(evidence));
  return finding;
}

}  // namespace epochmeter::diagnose
