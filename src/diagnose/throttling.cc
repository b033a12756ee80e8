// SPDX-License-Identifier: Apache-2.0
#include "diagnose/throttling.h"

#include <algorithm>
#include <cmath>

#include "diagnose/activity.h"
#include "diagnose/curves.h"
#include "diagnose/say.h"

namespace epochmeter::diagnose {
namespace {

using model::Interval;

// Intervals of the ranks that use this GPU.
std::vector<Interval> StretchesOf(const Facts& facts, int32_t gpu) {
  std::vector<Interval> own;
  for (const RankFacts& rank : facts.ranks()) {
    if (std::find(rank.gpus.begin(), rank.gpus.end(), gpu) == rank.gpus.end()) continue;
    own.insert(own.end(), rank.steady.begin(), rank.steady.end());
  }
  return Join(std::move(own));
}

// Part of the time of `intervals` in which a sample of the mask has one of the bits.
std::optional<double> MaskRatio(const Facts& facts, const JudgedGpu& gpu, uint64_t bits) {
  const model::Curve* curve = facts.FindCurve(gpu.entity->id, "throttle_reasons");
  if (curve == nullptr) return {};
  const bool any = std::any_of(curve->buckets.begin(), curve->buckets.end(), [&](const auto& sum) {
    return sum.count > 0 && sum.max >= static_cast<double>(bits & (~bits + 1));
  });
  if (!any) return 0.0;
  const model::SeriesColumn column = facts.Read(gpu.entity->id, "throttle_reasons", gpu.Span());
  double with = 0;
  double all = 0;
  size_t at = 0;
  for (size_t i = 1; i < column.t_ns.size(); ++i) {
    while (at < gpu.intervals.size() && gpu.intervals[at].end_ns < column.t_ns[i]) ++at;
    if (at == gpu.intervals.size()) break;
    if (!gpu.intervals[at].Contains(column.t_ns[i])) continue;
    const double value = column.value[i];
    if (!(value >= 0 && value < 9e15)) continue;
    const double weight =
        model::SampleWeightSeconds(column.t_ns[i - 1], column.t_ns[i], curve->period_ns);
    all += weight;
    if ((static_cast<uint64_t>(value) & bits) != 0) with += weight;
  }
  if (all <= 0) return {};
  return with / all;
}

std::optional<double> HighestIn(const model::Curve& curve) {
  std::optional<double> highest;
  for (const model::Summary& bucket : curve.buckets) {
    if (bucket.count > 0) highest = std::max(highest.value_or(bucket.max), bucket.max);
  }
  return highest;
}

}  // namespace

Interval JudgedGpu::Span() const {
  if (intervals.empty()) return {.begin_ns = 0, .end_ns = 0};
  return {.begin_ns = intervals.front().begin_ns, .end_ns = intervals.back().end_ns};
}

std::vector<JudgedGpu> JudgedGpus(const Facts& facts) {
  std::vector<JudgedGpu> list;
  const std::vector<Interval> of_all = SteadyOfAll(facts);
  for (const int32_t index : GpusOfJob(facts)) {
    JudgedGpu gpu{.gpu = index, .entity = facts.Gpu(index), .intervals = StretchesOf(facts, index)};
    if (gpu.entity == nullptr) continue;
    if (gpu.intervals.empty()) gpu.intervals = of_all;
    gpu.steady = !gpu.intervals.empty();
    if (!gpu.steady) gpu.intervals = {facts.run().Recorded()};
    gpu.seconds = TotalSeconds(gpu.intervals);
    list.push_back(std::move(gpu));
  }
  return list;
}

std::optional<Held> HeldDown(const Facts& facts, const JudgedGpu& gpu,
                             std::string_view counter_field, uint64_t bits) {
  std::optional<Held> held;
  const std::string rate = counter_field.empty() ? std::string() : RateField(counter_field);
  const auto counted =
      rate.empty() ? std::optional<double>() : MeanOver(facts, gpu.gpu, rate, gpu.intervals);
  if (counted) {
    held = Held{.ratio = std::clamp(*counted, 0.0, 1.0),
                .series = "gpu" + std::to_string(gpu.gpu) + " " + rate};
  }
  const std::optional<double> masked = bits == 0 ? std::nullopt : MaskRatio(facts, gpu, bits);
  if (masked && (!held || *masked > held->ratio)) {
    held = Held{.ratio = *masked, .series = "gpu" + std::to_string(gpu.gpu) + " throttle_reasons"};
  }
  return held;
}

double Clocks::LostRatio() const {
  if (!mean_hz || !max_hz || !(*max_hz > 0)) return 0;
  return std::clamp(1 - *mean_hz / *max_hz, 0.0, 1.0);
}

Clocks ClocksOf(const Facts& facts, const JudgedGpu& gpu) {
  Clocks clocks{.mean_hz = MeanOver(facts, gpu.gpu, "sm_clock_hz", gpu.intervals), .max_hz = {}};
  for (const std::string_view field : {"sm_clock_max_hz", "sm_clock_hz"}) {
    const model::Curve* curve = facts.FindCurve(gpu.entity->id, field);
    if (curve != nullptr && !clocks.max_hz) clocks.max_hz = HighestIn(*curve);
  }
  return clocks;
}

std::optional<double> HighestOf(const Facts& facts, const JudgedGpu& gpu, std::string_view field) {
  const model::Curve* curve = facts.FindCurve(gpu.entity->id, field);
  if (curve == nullptr) return {};
  const model::Summary sum = Sum(*curve, gpu.intervals);
  if (sum.count > 0) return sum.max;
  return HighestIn(*curve);
}

model::Message SayGpus(size_t count, int32_t worst) {
  if (count <= 1) return Say("gpu{}", "gpu{}", worst);
  return Say("{} GPUs (worst: gpu{})", "{} 块 GPU（最严重：gpu{}）", count, worst);
}

}  // namespace epochmeter::diagnose
