// SPDX-License-Identifier: Apache-2.0
// A step needed far more device memory than all before it: one odd batch decides how large the
// device must be.
//
// What a step needs is how far the allocator's peak rose above what was held before the step.
// Judged after warm-up, against the highest need until then, so that growth of what is held, and
// batches of varying length that were seen before, are none. A jump beside an evaluation or another
// phase is that phase's. A slow step is the second witness, not a condition. False positives: the
// first of a new kind of steps, such as a second stage of the training.
#include <algorithm>
#include <cmath>

#include "diagnose/memory.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"
#include "diagnose/statistics.h"

namespace epochmeter::diagnose {
namespace {

using model::Advice;
using model::Finding;
using model::Severity;

constexpr size_t kFewestPoints = 10;
constexpr size_t kMostSteps = 20;
constexpr double kSlowStep = 2;  // times the median

struct Spike {
  model::Interval interval;    // from the sample before to the one that shows it
  size_t first = 0, last = 0;  // places in RankFacts::steps it can be
  double need_bytes = 0, usual_bytes = 0, peak_bytes = 0;
};

bool BesidePhase(const RankFacts& rank, model::Interval interval) {
  return std::any_of(rank.phases.begin(), rank.phases.end(), [&](const PhaseSpan& phase) {
    return phase.interval.begin_ns <= interval.end_ns && phase.interval.end_ns >= interval.begin_ns;
  });
}

// A long run's curve has four samples a bucket: the file has the one where the peak jumped.
void Sharpen(const Facts& facts, const RankFacts& rank, const model::Curve& curve, Spike* spike) {
  if (curve.exact) return;
  const model::SeriesColumn column = facts.Read(curve.entity, curve.field, spike->interval);
  for (size_t i = 1; i < column.t_ns.size(); ++i) {
    const double half = spike->peak_bytes - (spike->need_bytes - spike->usual_bytes) / 2;
    if (column.value[i] < half) continue;
    spike->interval = {.begin_ns = column.t_ns[i - 1], .end_ns = column.t_ns[i]};
    break;
  }
  const auto place = [&](int64_t t_ns) {
    const auto after =
        std::upper_bound(rank.steps.begin(), rank.steps.end(), t_ns,
                         [](int64_t t, const TrainStep& step) { return t < step.end_ns; });
    return static_cast<size_t>(after - rank.steps.begin());
  };
  spike->first = place(spike->interval.begin_ns);
  spike->last = place(spike->interval.end_ns);
}

// A sample from the middle of a step shows what that step did so far.
void AddStepUnderWay(const RankFacts& rank, Spike* spike) {
  const auto& steps = rank.steps;
  const bool began =
      spike->last < steps.size() && steps[spike->last].begin_ns < spike->interval.end_ns;
  if (began) ++spike->last;
}

std::vector<Spike> SpikesOf(const Facts& facts, const RankFacts& rank,
                            std::span<const AllocatorPoint> points, double ratio) {
  std::vector<Spike> spikes;
  const model::Curve* peak = facts.FrameworkCurve(rank, "max_allocated_bytes");
  double usual = points.empty() ? 0 : std::fmax(points.front().peak - points.front().allocated, 0);
  for (size_t i = 1; i < points.size() && spikes.size() < kMostSteps; ++i) {
    if (!(points[i].peak > points[i - 1].peak)) continue;
    const double need = points[i].peak - points[i - 1].allocated;
    const model::Interval interval{.begin_ns = points[i - 1].t_ns + 1, .end_ns = points[i].t_ns};
    const size_t step = points[i].step;
    const bool judged = step > 0 && !rank.steps[step - 1].warm_up && points[i - 1].step > 0;
    if (judged && usual > 0 && need >= ratio * usual && !BesidePhase(rank, interval)) {
      spikes.push_back({.interval = interval,
                        .first = points[i - 1].step,
                        .last = step,
                        .need_bytes = need,
                        .usual_bytes = usual,
                        .peak_bytes = points[i].peak});
      Sharpen(facts, rank, *peak, &spikes.back());
      AddStepUnderWay(rank, &spikes.back());
    }
    usual = std::max(usual, need);
  }
  return spikes;
}

double MedianDuration(const RankFacts& rank) {
  std::vector<double> durations;
  for (const TrainStep& step : rank.steps) {
    if (!step.warm_up && std::isfinite(step.duration_s)) durations.push_back(step.duration_s);
  }
  std::sort(durations.begin(), durations.end());
  return Percentile(durations, 0.5).value_or(model::kAbsentNumber);
}

// The step that it was: the slowest of those between the two samples.
size_t StepOf(const RankFacts& rank, const Spike& spike) {
  size_t slowest = spike.last - 1;
  for (size_t i = spike.first; i < spike.last; ++i) {
    if (rank.steps[i].duration_s > rank.steps[slowest].duration_s) slowest = i;
  }
  return slowest;
}

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

Finding Found(const Facts& facts, const RankFacts& rank, const std::vector<Spike>& spikes) {
  const Spike& worst =
      *std::max_element(spikes.begin(), spikes.end(),
                        [](const Spike& a, const Spike& b) { return a.need_bytes < b.need_bytes; });
  const size_t place = StepOf(rank, worst);
  const TrainStep& step = rank.steps[place];
  const auto gpu = AllocatorGpu(facts, rank);
  const auto room = gpu ? RoomOf(facts, *gpu) : std::nullopt;
  const double extra = worst.need_bytes - worst.usual_bytes;
  const double median_s = MedianDuration(rank);
  const bool slow = step.duration_s >= kSlowStep * median_s;
  const bool much =
      !room || extra >= facts.limits()["memory_spike.device_ratio"] * room->limit_bytes;
  Finding finding;
  finding.severity = much ? Severity::kWarning : Severity::kInfo;
  finding.rank = rank.rank;
  finding.pid = rank.pid;
  finding.gpu = gpu;
  finding.confidence = slow ? 0.97 : 0.85;
  finding.summary =
      Say("Step {} of {} needed {} of device memory, {} times what any step before it did ({}).",
          "{1} 的第 {0} 步需要 {2} 显存，是之前任何一步的 {3} 倍（{4}）。",
          StepNumber(step, place + 1), rank.name, SayBytes(worst.need_bytes),
          SayNumber(worst.need_bytes / worst.usual_bytes), SayBytes(worst.usual_bytes));
  finding.explanation =
      slow ? Say("The same step took {} where {} are usual. The device must have room for it, and "
                 "the allocator may keep what it took.",
                 "同一步用时 {}，通常为 {}。设备必须容纳它，分配器可能保留已取得的显存。",
                 SaySeconds(step.duration_s), SaySeconds(median_s))
           : Say("The device must have room for it, and the allocator may keep what it took. It is "
                 "among steps {} to {}.",
                 "设备必须容纳它，分配器可能保留已取得的显存。它位于第 {} 至 {} 步之间。",
                 StepNumber(rank.steps[worst.first], worst.first + 1),
                 StepNumber(rank.steps[worst.last - 1], worst.last));
  finding.advice = HowToSmooth();
  model::Evidence evidence{.series = rank.name + " max_allocated_bytes",
                           .interval = worst.interval,
                           .values = {{"need_bytes", worst.need_bytes},
                                      {"usual_need_bytes", worst.usual_bytes},
                                      {"peak_bytes", worst.peak_bytes}}};
  if (std::isfinite(step.batch_size)) evidence.values.emplace_back("batch_size", step.batch_size);
  if (std::isfinite(step.duration_s)) evidence.values.emplace_back("duration_s", step.duration_s);
  if (std::isfinite(median_s)) evidence.values.emplace_back("median_duration_s", median_s);
  for (const Spike& spike : spikes) {
    const size_t at = StepOf(rank, spike);
    evidence.steps.push_back(StepNumber(rank.steps[at], at + 1));
  }
  finding.evidence.push_back(std::move(evidence));
  return finding;
}

Judgement Judge(const Facts& facts) {
  Judgement judgement;
  bool any = false;
  for (const RankFacts& rank : facts.ranks()) {
    const std::vector<AllocatorPoint> points = AllocatorPoints(facts, rank);
    const auto told = std::count_if(points.begin(), points.end(), [](const AllocatorPoint& point) {
      return point.steady && std::isfinite(point.peak);
    });
    if (static_cast<size_t>(told) < kFewestPoints) continue;
    any = true;
    const auto spikes = SpikesOf(facts, rank, points, facts.limits()["memory_spike.ratio"]);
    if (!spikes.empty()) judgement.findings.push_back(Found(facts, rank, spikes));
  }
  FoldRanks("need_bytes", &judgement.findings);
  if (any) return judgement;
  return NotApplicable(
      Say("no rank tells the peak of its allocator in at least {} steps after "
          "warm-up; import epochmeter in the training",
          "没有任何 rank 在预热之后的至少 {} 步中报告分配器峰值；在训练中 import "
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
