// SPDX-License-Identifier: Apache-2.0
// A step needed far more device memory than all before it: one odd batch decides how large the
// device must be.
//
// What a step needs is how far the allocator's peak rose above what was held before the step.
// Judged after warm-up, against the highest need until then, so that growth of what is held, and
// batches of varying length that were seen before, are none. A jump beside an evaluation or another
// phase is that phase's. Where the allocator is read each second, the step is the one with the
// largest batch or the slowest in between, and said with less confidence. Without an allocator the
// device's memory is judged: a remark, unless a step stands out. False positives: the first of a
// new kind of steps, such as a second stage of the training.
#include <algorithm>
#include <cmath>

#include "diagnose/memory_spikes.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"

namespace epochmeter::diagnose {
namespace {

using model::Advice;
using model::Finding;
using model::Severity;

constexpr size_t kFewestPoints = 6;  // after warm-up
constexpr size_t kFewSteps = 2;      // among so many it is known which one it was
constexpr double kSlowStep = 2;      // times the median

std::vector<Advice> HowToSmooth() {
  const model::Message text =
      Say("Look at the batch of this step. Limit the size of a sample (crop, truncate, split), or "
          "batch by total size instead of count, so that no batch is far larger than the rest.",
          "检查该步的批次。限制单个样本的大小（裁剪、截断、拆分），或按总大小而不是数量组批，"
          "使批次之间相差不大。");
  return {{.framework = "paddle",
           .text = text,
           .code = "paddle.vision.transforms.Resize(size)\n"
                   "paddlenlp.data.Pad(...), max_seq_len=512"},
          {.framework = "tensorflow",
           .text = text,
           .code = "ds.bucket_by_sequence_length(len_fn, boundaries, batch_sizes)"},
          {.framework = "pytorch",
           .text = text,
           .code = "DataLoader(dataset, batch_sampler=by_total_length)\n"
                   "tokenizer(text, truncation=True, max_length=512)"}};
}

// What a rank's spikes were found by.
struct Found {
  std::vector<Spike> spikes;
  const model::Curve* curve = nullptr;
  bool of_allocator = true;
};

// Nothing when it can't be judged.
std::optional<Found> FindIn(const Facts& facts, const RankFacts& rank) {
  Found found{.curve = facts.FrameworkCurve(rank, "max_allocated_bytes")};
  std::vector<AllocatorPoint> points;
  if (found.curve != nullptr) points = AllocatorPoints(facts, rank);
  const auto judged = [&] {
    return std::count_if(points.begin(), points.end(), [&](const AllocatorPoint& point) {
      return std::isfinite(point.peak) && point.step > 0 && !rank.steps[point.step - 1].warm_up;
    });
  };
  if (static_cast<size_t>(judged()) < kFewestPoints) {
    DevicePoints device = PointsOfDevice(facts, rank);
    found.curve = device.curve;
    found.of_allocator = false;
    points = std::move(device.points);
    if (static_cast<size_t>(judged()) < kFewestPoints) return {};
  }
  found.spikes = FindSpikes(facts, rank, points, *found.curve);
  return found;
}

// Which step it was is certain where samples come with the steps, and likely where one stands out.
double ConfidenceIn(const RankFacts& rank, const Found& found, const Spike& worst) {
  const bool one = worst.last - worst.first <= kFewSteps;
  const bool out = StandsOut(rank, worst);
  if (!found.of_allocator) return out ? 0.6 : 0.4;
  return one ? (out ? 0.97 : 0.85) : (out ? 0.8 : 0.6);
}

model::Message SummaryOf(const RankFacts& rank, const Found& found, const Spike& worst) {
  const size_t place = StepOf(rank, worst);
  const int64_t step = StepNumber(rank.steps[place], place + 1);
  const std::string times = SayNumber(worst.need_bytes / worst.usual_bytes);
  const std::string need = SayBytes(worst.need_bytes), usual = SayBytes(worst.usual_bytes);
  if (!found.of_allocator) {
    return Say("The device memory in use jumped from {} to {} beside step {} of {}.",
               "在 {3} 的第 {2} 步附近，显存占用从 {0} 跳升至 {1}。", usual, need, step, rank.name);
  }
  if (worst.last - worst.first <= kFewSteps || StandsOut(rank, worst)) {
    return Say(
        "Step {} of {} needed {} of device memory, {} times what any step before it did "
        "({}).",
        "{1} 的第 {0} 步需要 {2} 显存，是之前任何一步的 {3} 倍（{4}）。", step, rank.name, need,
        times, usual);
  }
  return Say(
      "A step among {} to {} of {} needed {} of device memory, {} times what any step "
      "before it did ({}).",
      "{2} 的第 {0} 至 {1} 步中有一步需要 {3} 显存，是之前任何一步的 {4} 倍（{5}）。",
      StepNumber(rank.steps[worst.first], worst.first + 1),
      StepNumber(rank.steps[worst.last - 1], worst.last), rank.name, need, times, usual);
}

model::Message ExplanationOf(const RankFacts& rank, const Spike& worst) {
  const TrainStep& step = rank.steps[StepOf(rank, worst)];
  const double median_s = MedianDuration(rank);
  model::Message told =
      Say("The device must have room for it, and the allocator may keep what it "
          "took.",
          "设备必须容纳它，分配器可能保留已取得的显存。");
  model::Message which;
  if (step.duration_s >= kSlowStep * median_s) {
    which = Say(" The same step took {} where {} are usual.", "同一步用时 {}，通常为 {}。",
                SaySeconds(step.duration_s), SaySeconds(median_s));
  }
  if (worst.last - worst.first > kFewSteps) {
    const model::Message among =
        Say(" The peak was read before step {} and after step {}, so it may be another one between "
            "them.",
            "峰值在第 {} 步之前和第 {} 步之后读取，因此也可能是其间的另一步。",
            StepNumber(rank.steps[worst.first], worst.first + 1),
            StepNumber(rank.steps[worst.last - 1], worst.last));
    which.en += among.en;
    which.zh += among.zh;
  }
  return {.en = told.en + which.en, .zh = told.zh + which.zh};
}

model::Evidence EvidenceOf(const Facts& facts, const RankFacts& rank, const Found& found,
                           const Spike& worst) {
  const TrainStep& step = rank.steps[StepOf(rank, worst)];
  const double median_s = MedianDuration(rank);
  model::Evidence evidence{.series = facts.SeriesName(*found.curve),
                           .interval = worst.interval,
                           .values = {{"need_bytes", worst.need_bytes},
                                      {"usual_need_bytes", worst.usual_bytes},
                                      {"peak_bytes", worst.peak_bytes}}};
  if (std::isfinite(step.batch_size)) evidence.values.emplace_back("batch_size", step.batch_size);
  if (std::isfinite(step.duration_s)) evidence.values.emplace_back("duration_s", step.duration_s);
  if (std::isfinite(median_s)) evidence.values.emplace_back("median_duration_s", median_s);
  for (const Spike& spike : found.spikes) {
    const size_t at = StepOf(rank, spike);
    evidence.steps.push_back(StepNumber(rank.steps[at], at + 1));
  }
  return evidence;
}

Finding FindingOf(const Facts& facts, const RankFacts& rank, const Found& found) {
  const Spike& worst =
      *std::max_element(found.spikes.begin(), found.spikes.end(),
                        [](const Spike& a, const Spike& b) { return a.need_bytes < b.need_bytes; });
  const auto gpu = found.of_allocator ? AllocatorGpu(facts, rank) : rank.gpus.front();
  const auto room = gpu ? RoomOf(facts, *gpu) : std::nullopt;
  const double extra = worst.need_bytes - worst.usual_bytes;
  const bool much =
      !room || extra >= facts.limits()["memory_spike.device_ratio"] * room->limit_bytes;
  // A device alone does not tell whose a jump is: a step that stands out must bear witness.
  const bool sure = found.of_allocator || StandsOut(rank, worst);
  Finding finding;
  finding.severity = much && sure ? Severity::kWarning : Severity::kInfo;
  finding.rank = rank.rank;
  finding.pid = rank.pid;
  finding.gpu = gpu;
  finding.confidence = ConfidenceIn(rank, found, worst);
  finding.summary = SummaryOf(rank, found, worst);
  finding.explanation = ExplanationOf(rank, worst);
  finding.advice = HowToSmooth();
  finding.evidence.push_back(EvidenceOf(facts, rank, found, worst));
  return finding;
}

Judgement Judge(const Facts& facts) {
  Judgement judgement;
  bool any = false;
  for (const RankFacts& rank : facts.ranks()) {
    const auto found = FindIn(facts, rank);
    if (!found) continue;
    any = true;
    if (!found->spikes.empty()) judgement.findings.push_back(FindingOf(facts, rank, *found));
  }
  FoldRanks("need_bytes", &judgement.findings);
  if (any) return judgement;
  return NotApplicable(
      Say("no rank tells the peak of its allocator, nor its device its memory in use, {} times "
          "after warm-up; import epochmeter in the training",
          "预热之后没有任何 rank 报告 {0} 次分配器峰值，也没有 {0} 次设备显存占用；在训练中 import "
          "epochmeter",
          kFewestPoints));
}

}  // namespace

namespace rules {

const RuleDef kMemorySpike = {.id = "memory_spike",
                              .Title =
                                  [] {
                                    return Say("One step needs far more memory than the others",
                                               "个别步骤的显存需求远高于其他步骤");
                                  },
                              .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
