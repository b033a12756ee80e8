// SPDX-License-Identifier: Apache-2.0
// More data loader workers than CPUs, or too few while the training waits for its data. Needs the
// number of workers (or a process tree of the ranks alone: then there are none) and of CPUs.
//
// CPUs are those that the run may use: affinity, cpuset and quotas. The ranks of this host share
// them. Few workers are a fault only where steps wait: a data set that lies in memory or on the GPU
// needs none. Always a remark: data_starvation warns of the waiting.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "diagnose/activity.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"
#include "model/entity_name.h"

namespace epochmeter::diagnose {
namespace {

using model::Finding;
using model::Severity;

constexpr double kBusyRatio = 0.9;   // a GPU at this utilisation does not wait
constexpr double kMostPerRank = 16;  // that are ever advised

struct Counted {
  double workers = 0;  // of all ranks
  const model::Curve* curve = nullptr;
  bool none = false;  // not counted, but there are no processes beside the ranks
};

double HighestIn(const model::Curve& curve) {
  double highest = 0;
  for (const model::Summary& bucket : curve.buckets) {
    if (bucket.count > 0) highest = std::max(highest, bucket.max);
  }
  return highest;
}

// Most workers at a time in steady steps, rank by rank.
std::optional<Counted> Workers(const Facts& facts) {
  const std::vector<model::Interval> steady = SteadyOfAll(facts);
  Counted counted;
  for (const model::EntityDef& entity : facts.run().entities) {
    if (entity.scope != model::Scope::kProcess) continue;
    const model::Curve* curve = facts.FindCurve(entity.id, "workers");
    if (curve == nullptr) continue;
    const model::Summary sum = Sum(*curve, steady);
    counted.workers += sum.count > 0 ? sum.max : HighestIn(*curve);
    if (counted.curve == nullptr) counted.curve = curve;
  }
  if (counted.curve != nullptr) return counted;
  counted.curve = facts.TreeCurve("processes");
  if (counted.curve == nullptr) return {};
  const model::Summary sum = Sum(*counted.curve, steady);
  const auto ranks = static_cast<double>(facts.ranks().size());
  if (sum.count == 0 || sum.max > ranks) return {};
  counted.none = true;
  return counted;
}

// CPUs that the run may use; of all the host when no limit was recorded.
std::optional<double> Cpus(const Facts& facts) {
  std::optional<double> cpus;
  for (const std::string_view field : {"cpu_limit_cores", "cpu_count"}) {
    const model::Curve* curve = facts.HostCurve(field);
    if (curve != nullptr && !cpus) cpus = HighestIn(*curve);
  }
  const model::Curve* quota = facts.FirstCurve(model::Scope::kCgroup, "cpu_quota_cores");
  if (quota != nullptr && cpus) cpus = std::min(*cpus, HighestIn(*quota));
  for (const model::EntityDef& entity : facts.run().entities) {
    if (entity.scope != model::Scope::kHost || cpus) continue;
    const std::string text(model::Find(entity.attributes, "cpus"));
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    if (!text.empty() && end != text.c_str() && number >= 1 && number < 1e6) cpus = number;
  }
  if (cpus && !(*cpus > 0)) return {};
  return cpus;
}

// Whether steps wait for data that the GPU does not hide.
bool Starves(const Facts& facts) {
  for (const RankFacts& rank : facts.ranks()) {
    const auto wait = DataWaitRatio(rank);
    if (!wait || *wait < facts.limits()["data_starvation.warning_ratio"]) continue;
    const auto busy = MeanOver(facts, rank.gpus, "utilization_ratio", SteadySpans(rank));
    if (busy.value_or(0) < kBusyRatio) return true;
  }
  return false;
}

std::vector<model::Advice> HowToSet(double per_rank) {
  return {
      {.framework = "paddle",
       .text = Say("Use {:.0f} workers a rank.", "每个 rank 使用 {:.0f} 个子进程。", per_rank),
       .code = fmt::format("paddle.io.DataLoader(dataset, num_workers={:.0f}, "
                           "persistent_workers=True)",
                           per_rank)},
      {.framework = "tensorflow",
       .text = Say("Let tf.data take the threads that it needs, within {:.0f}.",
                   "让 tf.data 自行决定线程数，不超过 {:.0f}。", per_rank),
       .code = fmt::format("options = tf.data.Options()\n"
                           "options.threading.private_threadpool_size = {:.0f}\n"
                           "ds = ds.with_options(options)",
                           per_rank)},
      {.framework = "pytorch",
       .text = Say("Use {:.0f} workers a rank.", "每个 rank 使用 {:.0f} 个子进程。", per_rank),
       .code = fmt::format("DataLoader(dataset, num_workers={:.0f}, persistent_workers=True, "
                           "pin_memory=True)",
                           per_rank)},
  };
}

Finding Told(const Facts& facts, const Counted& counted, double cpus, bool many) {
  const auto ranks = static_cast<double>(std::max<size_t>(facts.ranks().size(), 1));
  const double advised = std::clamp(std::floor(cpus / ranks), 1.0, kMostPerRank);
  const std::string of_ranks = fmt::format("{:.0f}", ranks);
  Finding finding;
  finding.severity = Severity::kInfo;
  finding.confidence = counted.none ? 0.7 : 0.85;
  finding.summary =
      many
          ? Say("{:.0f} data loader workers of {} ranks share {} CPUs.",
                "{1} 个 rank 的 {0:.0f} 个数据加载子进程共用 {2} 个 CPU。", counted.workers,
                of_ranks, SayNumber(cpus))
          : Say("The training waits for data with {:.0f} data loader workers, and may use {} CPUs.",
                "训练在等待数据，却只有 {:.0f} 个数据加载子进程，而可用 CPU 有 {} 个。",
                counted.workers, SayNumber(cpus));
  finding.explanation =
      many ? Say("Workers beyond the CPUs take turns, and take memory each.",
                 "超过 CPU 数量的子进程只能轮流运行，并各自占用内存。")
           : Say("Each worker loads and decodes on a CPU of its own; the ranks of this host share "
                 "them. Storage that is slower than the training is not helped by workers.",
                 "每个子进程占用一个 CPU 进行加载和解码，本机各 rank 共用这些 CPU。若存储本身过慢，"
                 "增加子进程没有帮助。");
  finding.advice = HowToSet(advised);
  finding.evidence.push_back({.series = facts.SeriesName(*counted.curve),
                              .interval = facts.run().Recorded(),
                              .values = {{"workers", counted.workers},
                                         {"cpus", cpus},
                                         {"ranks", ranks},
                                         {"data_wait_ratio", WorstDataWaitRatio(facts)}},
                              .note = {},
                              .steps = {}});
  return finding;
}

Judgement Judge(const Facts& facts) {
  const std::optional<Counted> counted = Workers(facts);
  const std::optional<double> cpus = Cpus(facts);
  if (!counted || !cpus || facts.ranks().empty()) {
    return NotApplicable(Say("the number of data loader workers or of CPUs is not known",
                             "数据加载子进程数或 CPU 数未知"));
  }
  const bool starves = Starves(facts);
  const bool many = counted->workers > facts.limits()["worker_count.over_ratio"] * *cpus;
  const bool few = counted->workers < facts.limits()["worker_count.under_ratio"] * *cpus;
  Judgement judgement;
  if (many || (few && starves)) {
    judgement.findings.push_back(Told(facts, *counted, *cpus, many));
  }
  return judgement;
}

}  // namespace

namespace rules {

const RuleDef kWorkerCount = {
    .id = "worker_count",
    .Title = [] { return Say("The number of data loader workers", "数据加载子进程的数量"); },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
