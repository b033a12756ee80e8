// SPDX-License-Identifier: Apache-2.0
// Most of the device's memory was never in use: a larger batch, or a smaller device, would do.
//
// By the allocator's peak, so that a pool taken at the start does not count as use, and whatever is
// beside it on the device. Only remarked on: whether a larger batch trains as well is not seen
// here.
#include <algorithm>
#include <cmath>

#include "diagnose/memory.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"
#include "diagnose/statistics.h"

namespace epochmeter::diagnose {
namespace {

using model::Finding;

constexpr double kMostTimes = 10;  // beyond, the figure says nothing more
constexpr double kFill = 0.9;      // of the device that a larger batch may fill

struct Headroom {
  int32_t gpu = 0;
  double peak_bytes = 0, beside_bytes = 0, need_bytes = 0, limit_bytes = 0;
  double Used() const { return peak_bytes + beside_bytes; }
  // How many times the batch would fit, if what a step needs grows with it.
  double Times() const {
    const double held = Used() - need_bytes;
    return need_bytes > 0 ? (kFill * limit_bytes - held) / need_bytes : 1;
  }
};

std::optional<Headroom> HeadroomOf(const Facts& facts, const RankFacts& rank) {
  const auto gpu = AllocatorGpu(facts, rank);
  const auto peak = HighestOf(facts.FrameworkCurve(rank, "max_allocated_bytes"));
  if (!gpu || !peak || rank.steady.empty()) return {};
  const auto room = RoomOf(facts, *gpu);
  const auto need = StepNeed(AllocatorPoints(facts, rank));
  if (!room || !need) return {};
  return Headroom{.gpu = *gpu,
                  .peak_bytes = *peak,
                  .beside_bytes = BesideAllocator(facts, rank, *gpu).value_or(0),
                  .need_bytes = *need,
                  .limit_bytes = room->limit_bytes};
}

std::optional<double> BatchOf(const RankFacts& rank) {
  std::vector<double> sizes;
  for (const TrainStep& step : rank.steps) {
    if (std::isfinite(step.batch_size)) sizes.push_back(step.batch_size);
  }
  std::sort(sizes.begin(), sizes.end());
  return Percentile(sizes, 0.5);
}

Finding Found(const RankFacts& rank, const Headroom& headroom) {
  Finding finding;
  finding.rank = rank.rank;
  finding.pid = rank.pid;
  finding.gpu = headroom.gpu;
  finding.confidence = 0.8;
  finding.summary =
      Say("{} used {} of its GPU's {} at the most ({}): a batch at least {:.0f} times as large "
          "would fit.",
          "{} 最多使用了 GPU 的 {} / {}（{}）：至少 {:.0f} 倍的批次也能容纳。", rank.name,
          SayBytes(headroom.Used()), SayBytes(headroom.limit_bytes),
          SayPercent(headroom.Used() / headroom.limit_bytes),
          std::floor(std::clamp(headroom.Times(), 1.0, kMostTimes)));
  finding.explanation = Say(
      "If what a step needs grows with the batch, to nine tenths of the device. Where the GPU is "
      "busy already a larger batch gains little; a smaller GPU would do as well.",
      "假设每步需求随批次增长，填到设备的九成。若 GPU 已经繁忙，增大批次收益不大；也可以使用更小"
      "的 GPU。");
  finding.advice.push_back(
      {.framework = "",
       .text =
           Say("Try twice the batch with the learning rate scaled, and compare samples a second.",
               "将批次加倍并相应调整学习率，比较每秒样本数。"),
       .code = "batch_size *= 2; learning_rate *= 2"});
  finding.evidence.push_back({.series = rank.name + " max_allocated_bytes",
                              .interval = rank.training,
                              .values = {{"free_bytes", headroom.limit_bytes - headroom.Used()},
                                         {"peak_bytes", headroom.peak_bytes},
                                         {"beside_allocator_bytes", headroom.beside_bytes},
                                         {"step_need_bytes", headroom.need_bytes},
                                         {"device_bytes", headroom.limit_bytes}}});
  if (const auto batch = BatchOf(rank)) {
    finding.evidence.back().values.emplace_back("batch_size", *batch);
  }
  return finding;
}

Judgement Judge(const Facts& facts) {
  Judgement judgement;
  bool any = false;
  for (const RankFacts& rank : facts.ranks()) {
    const auto headroom = HeadroomOf(facts, rank);
    if (!headroom) continue;
    any = true;
    const double most = facts.limits()["batch_headroom.used_ratio"] * headroom->limit_bytes;
    if (headroom->Used() < most && headroom->Times() >= 2) {
      judgement.findings.push_back(Found(rank, *headroom));
    }
  }
  FoldRanks("free_bytes", &judgement.findings);
  if (any) return judgement;
  return NotApplicable(Say("no rank tells the peak of its allocator on a GPU whose memory is known",
                           "没有任何 rank 在显存大小已知的 GPU 上报告分配器峰值"));
}

}  // namespace

namespace rules {

const RuleDef kBatchHeadroom = {
    .id = "batch_headroom",
    .Title = [] { return Say("The device has room for a larger batch", "设备可容纳更大的批次"); },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
