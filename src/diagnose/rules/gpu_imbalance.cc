// SPDX-License-Identifier: Apache-2.0
// The job's GPUs do very different amounts of work, all the time.
//
// Needs two GPUs of the job with SM activity or utilisation over steady steps. Work is judged by SM
// activity with power as the second witness, because a GPU that waits inside a collective reads
// busy and a rank that is waited for reads idle at the same power: that is straggler_rank's. Batch
// sizes that the ranks tell are evidence of their own. A GPU that is never used is idle_gpu's.
// False positives: pipelines whose stages differ by design; rank 0 that also evaluates.
#include <algorithm>
#include <cmath>

#include "diagnose/activity.h"
#include "diagnose/rank_times.h"
#include "diagnose/rank_waits.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"
#include "diagnose/stalls.h"

namespace epochmeter::diagnose {
namespace {

using model::Advice;
using model::Finding;
using model::Interval;
using model::Severity;

constexpr size_t kParts = 10;
constexpr double kPersistent = 0.8;  // of the parts
constexpr double kShortestJudged_s = 2;
constexpr double kInUse = 0.02;    // mean utilisation
constexpr double kSameWork = 0.9;  // figures this near to each other contradict batch sizes
constexpr size_t kMostListed = 16;

struct GpuLoad {
  int32_t gpu = -1;
  std::optional<size_t> rank;  // whose it is alone; index in Facts::ranks()
  std::optional<double> utilization, sm, power_w, memory_bytes, batch;
};

std::vector<Interval> JudgedTime(const Facts& facts) {
  return Without(SteadyOfAll(facts), StalledTime(facts));
}

std::vector<GpuLoad> Loads(const Facts& facts, std::span<const Interval> judged) {
  std::vector<GpuLoad> loads;
  const std::vector<RankGpus> owners = RanksWithOwnGpus(facts);
  for (const int32_t gpu : GpusOfJob(facts)) {
    GpuLoad load{.gpu = gpu,
                 .rank = {},
                 .utilization = MeanOver(facts, gpu, "utilization_ratio", judged),
                 .sm = MeanOver(facts, gpu, "sm_active_ratio", judged),
                 .power_w = MeanOver(facts, gpu, "power_w", judged),
                 .memory_bytes = MeanOver(facts, gpu, "memory_used_bytes", judged),
                 .batch = {}};
    const bool in_use = std::max(load.utilization.value_or(0), load.sm.value_or(0)) >= kInUse;
    if (!in_use) continue;
    for (const RankGpus& owner : owners) {
      if (owner.gpus.size() != 1 || owner.gpus.front() != gpu) continue;
      load.rank = owner.rank;
      load.batch = MeanBatch(facts.ranks()[owner.rank]);
    }
    loads.push_back(load);
  }
  return loads;
}

using Figure = std::optional<double> GpuLoad::*;

// GPUs with the least and the most of a figure; nothing unless all have it.
struct Ends {
  const GpuLoad* least = nullptr;
  const GpuLoad* most = nullptr;
  double low = 0, high = 0;
  double Ratio() const { return high > 0 ? low / high : 1; }
};
std::optional<Ends> EndsOf(const std::vector<GpuLoad>& loads, Figure figure) {
  Ends ends;
  for (const GpuLoad& load : loads) {
    const std::optional<double>& value = load.*figure;
    if (!value || !std::isfinite(*value)) return {};
    if (ends.least == nullptr || *value < ends.low) ends.least = &load;
    if (ends.most == nullptr || *value > ends.high) ends.most = &load;
    ends.low = *(ends.least->*figure);
    ends.high = *(ends.most->*figure);
  }
  if (ends.least == nullptr || ends.least == ends.most) return {};
  return ends;
}

// Whether the GPU with less has clearly less of the figure in most parts of the time.
bool Lasts(const Facts& facts, std::span<const Interval> judged, std::string_view field,
           const Ends& ends, double spread) {
  size_t parts = 0;
  size_t apart = 0;
  for (const std::vector<Interval>& part : Parts(judged, kParts)) {
    const auto low = MeanOver(facts, ends.least->gpu, field, part);
    const auto high = MeanOver(facts, ends.most->gpu, field, part);
    if (!low || !high) continue;
    ++parts;
    apart += *high - *low >= spread / 2 && *low < *high ? 1 : 0;
  }
  return parts > 0 && static_cast<double>(apart) >= kPersistent * static_cast<double>(parts);
}

// Which figure shows the imbalance.
struct Imbalance {
  Figure figure = nullptr;
  std::string field;
  Ends ends;
};

std::optional<Imbalance> ByWork(const Facts& facts, const std::vector<GpuLoad>& loads,
                                std::span<const Interval> judged) {
  const Limits& limits = facts.limits();
  const std::optional<Ends> power = EndsOf(loads, &GpuLoad::power_w);
  if (power && power->Ratio() >= limits["gpu_imbalance.power_ratio"]) return {};
  const double spread = limits["gpu_imbalance.spread"];
  if (const auto sm = EndsOf(loads, &GpuLoad::sm)) {
    const bool apart =
        sm->high - sm->low >= spread && sm->Ratio() < limits["gpu_imbalance.work_ratio"];
    if (!apart || !Lasts(facts, judged, "sm_active_ratio", *sm, spread)) return {};
    return Imbalance{.figure = &GpuLoad::sm, .field = "sm_active_ratio", .ends = *sm};
  }
  const auto busy = EndsOf(loads, &GpuLoad::utilization);
  if (!busy || busy->high - busy->low < 2 * spread) return {};
  if (!Lasts(facts, judged, "utilization_ratio", *busy, 2 * spread)) return {};
  return Imbalance{.figure = &GpuLoad::utilization, .field = "utilization_ratio", .ends = *busy};
}

std::optional<Imbalance> ByBatch(const Facts& facts, const std::vector<GpuLoad>& loads) {
  const auto batch = EndsOf(loads, &GpuLoad::batch);
  if (!batch || batch->Ratio() >= facts.limits()["gpu_imbalance.batch_ratio"]) return {};
  const auto sm = EndsOf(loads, &GpuLoad::sm);
  if (sm && sm->Ratio() >= kSameWork) return {};
  return Imbalance{.figure = &GpuLoad::batch, .field = "batch_size", .ends = *batch};
}

// The GPU that stands out: the one farther from the median of the others, of two the lighter.
const GpuLoad& StandsOut(const std::vector<GpuLoad>& loads, const Imbalance& found) {
  std::vector<double> values;
  for (const GpuLoad& load : loads) values.push_back(*(load.*found.figure));
  std::sort(values.begin(), values.end());
  const double below = MedianOfOthers(values, 0) - values.front();
  const double above = values.back() - MedianOfOthers(values, values.size() - 1);
  return above > below ? *found.ends.most : *found.ends.least;
}

std::vector<Advice> HowToBalance() {
  const auto text =
      Say("Give each rank the same number of samples of the same size, and use one "
          "process a GPU instead of one process for all.",
          "让每个 rank 处理相同数量、相近大小的样本，并使用每 GPU 一个进程，"
          "而不是一个进程驱动所有 GPU。");
  return {{.framework = "paddle",
           .text = text,
           .code = "sampler = paddle.io.DistributedBatchSampler(dataset, batch_size, shuffle=True, "
                   "drop_last=True)"},
          {.framework = "tensorflow",
           .text = text,
           .code = "ds = strategy.experimental_distribute_dataset(ds.batch(global_batch, "
                   "drop_remainder=True))"},
          {.framework = "pytorch",
           .text = text,
           .code = "sampler = DistributedSampler(dataset, drop_last=True)\n"
                   "model = DistributedDataParallel(model)  # not DataParallel"}};
}

model::Evidence EvidenceOf(const Facts& facts, const GpuLoad& load, const std::string& field,
                           std::span<const Interval> judged) {
  model::Evidence evidence{
      .series = "gpu" + std::to_string(load.gpu) + " " + field,
      .interval = {.begin_ns = judged.front().begin_ns, .end_ns = judged.back().end_ns},
      .values = {},
      .note = {},
      .steps = {}};
  if (field == "batch_size" && load.rank) {
    evidence.series = facts.ranks()[*load.rank].name + " batch_size";
  }
  const auto add = [&](const char* name, const std::optional<double>& value) {
    if (value) evidence.values.emplace_back(name, *value);
  };
  add("batch_size", load.batch);
  add("sm_active_ratio", load.sm);
  add("utilization_ratio", load.utilization);
  add("power_w", load.power_w);
  add("memory_used_bytes", load.memory_bytes);
  return evidence;
}

// What the lighter GPUs could have done of the heaviest one's work, in GPU seconds.
void Estimate(const Facts& facts, const std::vector<GpuLoad>& loads, const Imbalance& found,
              double judged_s, Finding* finding) {
  if (found.ends.high <= 0) return;
  double missing = 0;
  for (const GpuLoad& load : loads) missing += 1 - *(load.*found.figure) / found.ends.high;
  finding->lost_gpu_s = missing * judged_s;
  const double gain_s = missing / static_cast<double>(loads.size()) * judged_s;
  finding->gain_ratio = std::min(1.0, gain_s / std::max(facts.duration_s(), 1e-9));
}

std::string SayFigure(const Imbalance& found, double value) {
  return found.field == "batch_size" ? SayNumber(value) : SayPercent(value);
}

Finding FindingOf(const Facts& facts, const std::vector<GpuLoad>& loads, const Imbalance& found,
                  std::span<const Interval> judged) {
  const GpuLoad& odd = StandsOut(loads, found);
  Finding finding;
  finding.severity = Severity::kWarning;
  finding.gpu = odd.gpu;
  if (odd.rank) {
    finding.rank = facts.ranks()[*odd.rank].rank;
    finding.pid = facts.ranks()[*odd.rank].pid;
  }
  finding.confidence = found.field == "sm_active_ratio" ? 0.9 : 0.75;
  const std::string low = SayFigure(found, found.ends.low);
  const std::string high = SayFigure(found, found.ends.high);
  if (found.field == "batch_size") {
    finding.summary =
        Say("The ranks get very different batches: {} samples a step on GPU {}, {} "
            "on GPU {}.",
            "各 rank 的批次差别很大：GPU {1} 每步 {0} 个样本，GPU {3} 每步 {2} 个。", low,
            found.ends.least->gpu, high, found.ends.most->gpu);
  } else {
    finding.summary = Say("The GPUs do very different amounts of work: GPU {} {}, GPU {} {} ({}).",
                          "各 GPU 的工作量差别很大：GPU {} 为 {}，GPU {} 为 {}（{}）。",
                          found.ends.least->gpu, low, found.ends.most->gpu, high, found.field);
  }
  finding.explanation =
      Say("It lasts over the steady steps. The GPUs with less to do wait for the one with most.",
          "在整个稳定训练阶段都是如此。工作较少的 GPU 要等待工作最多的那个。");
  finding.advice = HowToBalance();
  Estimate(facts, loads, found, TotalSeconds(judged), &finding);
  for (size_t i = 0; i < std::min(loads.size(), kMostListed); ++i) {
    finding.evidence.push_back(EvidenceOf(facts, loads[i], found.field, judged));
  }
  return finding;
}

Finding MemoryFinding(const Facts& facts, const std::vector<GpuLoad>& loads, const Ends& memory,
                      std::span<const Interval> judged) {
  Finding finding;
  finding.severity = Severity::kInfo;
  finding.gpu = memory.most->gpu;
  finding.confidence = 0.7;
  finding.summary =
      Say("GPU {} holds {} of memory, GPU {} only {}: the fullest one limits the "
          "batch size of all.",
          "GPU {} 占用显存 {}，GPU {} 只占用 {}：最满的一个限制了所有 GPU 的批次大小。",
          memory.most->gpu, SayBytes(memory.high), memory.least->gpu, SayBytes(memory.low));
  finding.explanation =
      Say("Their work is alike; only the memory differs.", "它们的工作量相近，只是显存不同。");
  finding.advice = HowToBalance();
  for (size_t i = 0; i < std::min(loads.size(), kMostListed); ++i) {
    finding.evidence.push_back(EvidenceOf(facts, loads[i], "memory_used_bytes", judged));
  }
  return finding;
}

Judgement Judge(const Facts& facts) {
  const std::vector<Interval> judged = JudgedTime(facts);
  const std::vector<GpuLoad> loads =
      TotalSeconds(judged) >= kShortestJudged_s ? Loads(facts, judged) : std::vector<GpuLoad>();
  if (loads.size() < 2) {
    return NotApplicable(
        Say("needs two GPUs of the job that are in use over steady steps; the run "
            "shows {}",
            "需要作业在稳定步骤中使用至少两块 GPU；该运行只有 {} 块", loads.size()));
  }
  Judgement judgement;
  std::optional<Imbalance> found = ByWork(facts, loads, judged);
  if (!found) found = ByBatch(facts, loads);
  if (found) {
    judgement.findings.push_back(FindingOf(facts, loads, *found, judged));
    return judgement;
  }
  const auto memory = EndsOf(loads, &GpuLoad::memory_bytes);
  if (memory && memory->Ratio() < facts.limits()["gpu_imbalance.memory_ratio"]) {
    judgement.findings.push_back(MemoryFinding(facts, loads, *memory, judged));
  }
  return judgement;
}

}  // namespace

namespace rules {

const RuleDef kGpuImbalance = {.id = "gpu_imbalance",
                               .Title =
                                   [] {
                                     return Say("The GPUs have very different amounts of work",
                                                "各 GPU 的工作量差别很大");
                                   },
                               .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
