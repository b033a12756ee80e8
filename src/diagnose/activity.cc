// SPDX-License-Identifier: Apache-2.0
#include "diagnose/activity.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "diagnose/checkpoints.h"
#include "diagnose/own_gpus.h"
#include "diagnose/periods.h"
#include "diagnose/say.h"
#include "diagnose/slow_steps.h"
#include "diagnose/stalls.h"
#include "diagnose/statistics.h"

namespace epochmeter::diagnose {
namespace {

using model::Curve;
using model::Interval;
using model::Summary;

// Steps with less than this between them are one stretch of training.
constexpr int64_t kBridgeNs = base::kNsPerSecond;
// A thinned curve must cover so much of what is asked for.
constexpr double kFineEnough = 0.8;

// Whole ends of an interval may be the ends of the clock.
double SecondsOf(const Interval& interval) {
  return static_cast<double>(interval.end_ns) * 1e-9 -
         static_cast<double>(interval.begin_ns) * 1e-9;
}

// Times of damaged files may be as far apart as the clock allows.
uint64_t DistanceNs(int64_t from_ns, int64_t later_ns) {
  return static_cast<uint64_t>(later_ns) - static_cast<uint64_t>(from_ns);
}

// Collects samples or buckets, in the order of time, into stretches that are all low.
class LowStretches {
 public:
  explicit LowStretches(double shortest_s) : shortest_s_(shortest_s) {}
  void Low(int64_t begin_ns, int64_t end_ns) {
    if (!open_) current_.begin_ns = begin_ns;
    current_.end_ns = end_ns;
    open_ = true;
  }
  void Break() {
    if (open_ && current_.end_ns > current_.begin_ns && SecondsOf(current_) >= shortest_s_) {
      found_.push_back(current_);
    }
    open_ = false;
  }
  std::vector<Interval> Take() {
    Break();
    return std::move(found_);
  }

 private:
  double shortest_s_;
  bool open_ = false;
  Interval current_{.begin_ns = 0, .end_ns = 0};
  std::vector<Interval> found_;
};

}  // namespace

std::vector<Interval> Join(std::vector<Interval> intervals, int64_t bridge_ns) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.begin_ns < b.begin_ns; });
  std::vector<Interval> joined;
  for (const Interval& interval : intervals) {
    if (interval.end_ns < interval.begin_ns) continue;
    const bool near = !joined.empty() && (interval.begin_ns <= joined.back().end_ns ||
                                          DistanceNs(joined.back().end_ns, interval.begin_ns) <=
                                              static_cast<uint64_t>(bridge_ns));
    if (near) {
      joined.back().end_ns = std::max(joined.back().end_ns, interval.end_ns);
    } else {
      joined.push_back(interval);
    }
  }
  return joined;
}

std::vector<Interval> Overlap(std::span<const Interval> a, std::span<const Interval> b) {
  std::vector<Interval> both;
  for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    const Interval common{.begin_ns = std::max(a[i].begin_ns, b[k].begin_ns),
                          .end_ns = std::min(a[i].end_ns, b[k].end_ns)};
    if (common.begin_ns < common.end_ns) both.push_back(common);
    if (a[i].end_ns < b[k].end_ns) {
      ++i;
    } else {
      ++k;
    }
  }
  return both;
}

std::vector<Interval> Without(std::span<const Interval> intervals,
                              std::span<const Interval> holes) {
  std::vector<Interval> left;
  if (intervals.empty()) return left;
  const auto first = std::partition_point(holes.begin(), holes.end(), [&](const Interval& hole) {
    return hole.end_ns <= intervals.front().begin_ns;
  });
  auto from = static_cast<size_t>(first - holes.begin());
  for (const Interval& interval : intervals) {
    while (from < holes.size() && holes[from].end_ns <= interval.begin_ns) ++from;
    std::vector<Interval> inside;
    for (size_t i = from; i < holes.size() && holes[i].begin_ns < interval.end_ns; ++i) {
      inside.push_back(holes[i]);
    }
    for (const Interval& part : Subtract(interval, std::move(inside))) left.push_back(part);
  }
  return left;
}

std::vector<std::vector<Interval>> Parts(std::span<const Interval> intervals, size_t count) {
  std::vector<std::vector<Interval>> parts(count);
  if (intervals.empty()) return parts;
  const int64_t begin = intervals.front().begin_ns;
  const auto length = static_cast<int64_t>(DistanceNs(begin, intervals.back().end_ns) / count);
  for (size_t i = 0; i < count; ++i) {
    const int64_t from = begin + static_cast<int64_t>(i) * length;
    const bool last = i + 1 == count;
    const Interval part{.begin_ns = from, .end_ns = last ? intervals.back().end_ns : from + length};
    parts[i] = Overlap(intervals, std::span(&part, 1));
  }
  return parts;
}

std::vector<Interval> PhasesNamed(const RankFacts& rank,
                                  std::initializer_list<std::string_view> names) {
  std::vector<Interval> phases;
  for (const PhaseSpan& phase : rank.phases) {
    if (std::find(names.begin(), names.end(), phase.name) != names.end()) {
      phases.push_back(phase.interval);
    }
  }
  return Join(std::move(phases));
}

std::vector<Interval> PhasesOfAll(const Facts& facts) {
  std::vector<Interval> all;
  for (const RankFacts& rank : facts.ranks()) {
    const auto phases = PhasesNamed(rank, {"eval", "checkpoint", "compile"});
    all.insert(all.end(), phases.begin(), phases.end());
  }
  return Join(std::move(all));
}

std::vector<Interval> SteadySpans(const RankFacts& rank) {
  return Without(Join(rank.steady, kBridgeNs),
                 PhasesNamed(rank, {"eval", "checkpoint", "compile"}));
}

std::vector<Interval> SteadyOfAll(const Facts& facts) {
  return facts.shared().steady.Get([&] {
    std::vector<Interval> all;
    for (const RankFacts& rank : facts.ranks()) {
      all.insert(all.end(), rank.steady.begin(), rank.steady.end());
    }
    return Without(Join(std::move(all), kBridgeNs), PhasesOfAll(facts));
  });
}

std::vector<int32_t> GpusOfJob(const Facts& facts) {
  std::vector<int32_t> gpus;
  for (const model::GpuStats& gpu : facts.report().gpus) {
    if (gpu.of_job.value_or(true) && gpu.gpu >= 0) gpus.push_back(gpu.gpu);
  }
  std::sort(gpus.begin(), gpus.end());
  gpus.erase(std::unique(gpus.begin(), gpus.end()), gpus.end());
  return gpus;
}

std::optional<double> MeanOver(const Facts& facts, const Curve* curve,
                               std::span<const Interval> intervals) {
  if (curve == nullptr || intervals.empty()) return {};
  const Summary sum = Sum(*curve, intervals);
  if (curve->exact || sum.weight_s >= kFineEnough * TotalSeconds(intervals)) return sum.Mean();
  // Rates and derived figures are no recorded series: there is nothing finer.
  const std::optional<double> fine = facts.Over(curve->entity, curve->field, intervals).Mean();
  return fine ? fine : sum.Mean();
}

std::optional<double> MeanOver(const Facts& facts, int32_t gpu, std::string_view field,
                               std::span<const Interval> intervals) {
  return MeanOver(facts, facts.GpuCurve(gpu, field), intervals);
}

std::optional<double> MeanOver(const Facts& facts, std::span<const int32_t> gpus,
                               std::string_view field, std::span<const Interval> intervals) {
  double sum = 0;
  size_t count = 0;
  for (const int32_t gpu : gpus) {
    const std::optional<double> mean = MeanOver(facts, gpu, field, intervals);
    if (!mean || !std::isfinite(*mean)) continue;
    sum += *mean;
    ++count;
  }
  if (count == 0) return {};
  return sum / static_cast<double>(count);
}

std::optional<double> PowerLimit(const Facts& facts, int32_t gpu) {
  const Curve* curve = facts.GpuCurve(gpu, "power_limit_w");
  if (curve != nullptr) {
    for (size_t i = curve->points.value.size(); i-- > 0;) {
      if (curve->points.value[i] > 0) return curve->points.value[i];
    }
  }
  const model::EntityDef* entity = facts.Gpu(gpu);
  if (entity == nullptr) return {};
  const std::string_view text = Find(entity->attributes, "power_limit_mw");
  double milliwatts = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), milliwatts);
  if (parsed.ec != std::errc() || !(milliwatts > 0)) return {};
  return milliwatts / 1000;
}

std::vector<Interval> StretchesAtMost(const Curve& curve, double limit, double shortest_s) {
  LowStretches found(shortest_s);
  if (!curve.exact) {
    for (size_t i = 0; i < curve.buckets.size(); ++i) {
      if (curve.buckets[i].count > 0 && curve.buckets[i].max <= limit) {
        found.Low(curve.BucketBegin(i), curve.BucketBegin(i + 1));
      } else {
        found.Break();
      }
    }
    return found.Take();
  }
  for (size_t i = 0; i < curve.points.t_ns.size(); ++i) {
    // A sample speaks for the time up to it; NaN is no evidence of rest.
    if (curve.points.value[i] <= limit) {
      found.Low(curve.points.t_ns[i], curve.points.t_ns[i]);
    } else {
      found.Break();
    }
  }
  return found.Take();
}

std::optional<std::vector<Interval>> IdleStretches(const Facts& facts, int32_t gpu, double limit,
                                                   double shortest_s) {
  const Curve* utilization = facts.GpuCurve(gpu, "utilization_ratio");
  if (utilization == nullptr) return {};
  const auto idle = StretchesAtMost(*utilization, limit, shortest_s);
  const Curve* sm = facts.GpuCurve(gpu, "sm_active_ratio");
  if (sm == nullptr) return idle;
  std::vector<Interval> both;
  for (const Interval& stretch : idle) {
    const Summary active = Sum(*sm, std::span(&stretch, 1));
    if (active.count == 0 || active.Mean().value_or(0) <= limit) both.push_back(stretch);
  }
  return both;
}

std::optional<double> MedianStepSeconds(const RankFacts& rank) {
  std::vector<double> steady;
  std::vector<double> all;
  for (size_t i = 0; i < rank.steps.size(); ++i) {
    const TrainStep& step = rank.steps[i];
    if (!std::isfinite(step.duration_s) || step.duration_s < 0) continue;
    const double each = step.duration_s / step.steps;
    if (!step.warm_up) steady.push_back(each);
    if (i > 0) all.push_back(each);
  }
  std::vector<double>& values = steady.size() >= 3 ? steady : all;
  if (values.size() < 3) return {};
  return UnsortedMedian(std::move(values));
}

std::optional<double> DataWaitRatio(const RankFacts& rank) {
  double wait_s = 0;
  double step_s = 0;
  for (const TrainStep& step : rank.steps) {
    if (step.warm_up || !std::isfinite(step.duration_s) || !std::isfinite(step.data_wait_s)) {
      continue;
    }
    wait_s += step.data_wait_s;
    step_s += step.duration_s;
  }
  if (step_s <= 0) return {};
  return wait_s / step_s;
}

std::optional<double> MeanBatch(const RankFacts& rank) {
  double sum = 0;
  size_t count = 0;
  for (const TrainStep& step : rank.steps) {
    if (step.warm_up || !std::isfinite(step.batch_size)) continue;
    sum += step.batch_size;
    ++count;
  }
  if (count == 0) return {};
  return sum / static_cast<double>(count);
}

double WorstDataWaitRatio(const Facts& facts) {
  double worst = 0;
  for (const RankFacts& rank : facts.ranks()) {
    worst = std::max(worst, DataWaitRatio(rank).value_or(0));
  }
  return worst;
}

namespace {

std::vector<Interval> WorkingTimeOf(const Facts& facts) {
  std::vector<Interval> holes = StalledTime(facts);
  for (const int32_t gpu : GpusOfJob(facts)) {
    const auto idle = IdleStretches(facts, gpu, facts.limits()["idle_gpu.utilization_ratio"],
                                    facts.limits()["idle_gpu.stretch_s"]);
    if (idle) holes.insert(holes.end(), idle->begin(), idle->end());
  }
  for (const Saves& saves : FindSaves(facts)) {
    holes.insert(holes.end(), saves.spans.begin(), saves.spans.end());
  }
  return Without(SteadyOfAll(facts), Join(std::move(holes)));
}

// The largest part of a rank's steps that regular stalls take, where that is worth a warning.
double StallsRatio(const Facts& facts) {
  double most = 0;
  for (const RankFacts& rank : facts.ranks()) {
    const SlowSteps steps = SlowStepsOf(rank, facts.limits()["periodic_stall.median_factor"],
                                        facts.limits()["step_outlier.deviations"]);
    if (steps.ExcessRatio() > most && PeriodOf(rank, steps)) most = steps.ExcessRatio();
  }
  return most >= facts.limits()["periodic_stall.warning_ratio"] ? most : 0;
}

model::Message WhyLittleWorkOf(const Facts& facts) {
  const double wait = WorstDataWaitRatio(facts);
  if (wait >= facts.limits()["data_starvation.warning_ratio"]) {
    return Say("The steps wait for data in {} of their time (data_starvation).",
               "步骤有 {} 的时间在等待数据（data_starvation）。", SayPercent(wait));
  }
  if (const auto saves = WorstSaves(facts, FindSaves(facts))) {
    return Say("The training stops for checkpoints, {} of its time (checkpoint_stall).",
               "训练因保存检查点而停顿，占其时间的 {}（checkpoint_stall）。",
               SayPercent(saves->Ratio()));
  }
  const std::vector<int32_t> gpus = GpusOfJob(facts);
  const auto sm = MeanOver(facts, gpus, "sm_active_ratio", WorkingTime(facts));
  if (sm && *sm < facts.limits()["low_sm_activity.warning_ratio"]) {
    return Say("The kernels are tiny: SM activity is {} (low_sm_activity).",
               "内核过小：SM 活动率为 {}（low_sm_activity）。", SayPercent(*sm));
  }
  if (const double stalls = StallsRatio(facts); stalls > 0) {
    return Say("Regular stalls take {} of the time of the steps (periodic_stall).",
               "有规律的停顿占步骤时间的 {}（periodic_stall）。", SayPercent(stalls));
  }
  return {};
}

}  // namespace

std::vector<Interval> WorkingTime(const Facts& facts) {
  return facts.shared().working.Get([&] { return WorkingTimeOf(facts); });
}

model::Message WhyLittleWork(const Facts& facts) {
  return facts.shared().little_work.Get([&] { return WhyLittleWorkOf(facts); });
}

}  // namespace epochmeter::diagnose
