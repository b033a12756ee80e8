// SPDX-License-Identifier: Apache-2.0
#include "diagnose/memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/strings.h"
#include "diagnose/own_gpus.h"
#include "diagnose/say.h"
#include "diagnose/statistics.h"
#include "model/limits.h"

namespace epochmeter::diagnose {
namespace {

// Walks the rank's steps and steady stretches along rising times.
class Along {
 public:
  explicit Along(const RankFacts& rank) : rank_(rank) {}

  void MoveTo(int64_t t_ns) {
    while (step_ < rank_.steps.size() && rank_.steps[step_].end_ns <= t_ns) {
      done_ += rank_.steps[step_++].steps;
    }
    while (stretch_ < rank_.steady.size() && rank_.steady[stretch_].end_ns < t_ns) ++stretch_;
    steady_ = stretch_ < rank_.steady.size() && rank_.steady[stretch_].Contains(t_ns);
  }
  double done() const { return done_; }
  size_t step() const { return step_; }
  bool steady() const { return steady_; }

 private:
  const RankFacts& rank_;
  size_t step_ = 0, stretch_ = 0;
  double done_ = 0;
  bool steady_ = false;
};

// The last value of a curve up to each instant; instants do not fall.
class LastValue {
 public:
  explicit LastValue(const model::Curve* curve) : curve_(curve) {}
  double At(int64_t t_ns) {
    if (curve_ == nullptr) return value_;
    const auto& points = curve_->points;
    for (; at_ < points.t_ns.size() && points.t_ns[at_] <= t_ns; ++at_) {
      if (!model::IsAbsent(points.value[at_])) value_ = points.value[at_];
    }
    return value_;
  }

 private:
  const model::Curve* curve_;
  size_t at_ = 0;
  double value_ = model::kAbsentNumber;
};

// From where a level counts when there are no steps: the first fifth is warm-up.
int64_t CountsFrom(const RankFacts& rank) {
  return rank.training.begin_ns + (rank.training.end_ns - rank.training.begin_ns) / 5;
}

double SecondsSince(int64_t begin_ns, int64_t t_ns) {
  return base::SecondsFromNs(t_ns) - base::SecondsFromNs(begin_ns);
}

}  // namespace

std::vector<AllocatorPoint> AllocatorPoints(const Facts& facts, const RankFacts& rank) {
  std::vector<AllocatorPoint> points;
  const model::Curve* held = facts.FrameworkCurve(rank, "allocated_bytes");
  if (held == nullptr) return points;
  LastValue reserved(facts.FrameworkCurve(rank, "reserved_bytes"));
  LastValue peak(facts.FrameworkCurve(rank, "max_allocated_bytes"));
  points.reserve(held->points.t_ns.size());
  Along along(rank);
  for (size_t i = 0; i < held->points.t_ns.size(); ++i) {
    const int64_t t_ns = held->points.t_ns[i];
    along.MoveTo(t_ns);
    if (!std::isfinite(held->points.value[i])) continue;
    points.push_back({.t_ns = t_ns,
                      .allocated = held->points.value[i],
                      .reserved = reserved.At(t_ns),
                      .peak = peak.At(t_ns),
                      .x = along.done(),
                      .step = along.step(),
                      .steady = along.steady()});
  }
  return points;
}

std::vector<LevelPoint> HeldPoints(const RankFacts& rank, std::span<const AllocatorPoint> points) {
  std::vector<LevelPoint> held;
  const int64_t from = CountsFrom(rank);
  for (const AllocatorPoint& point : points) {
    const bool counts = rank.steps.empty() ? point.t_ns >= from : point.steady;
    if (!counts) continue;
    const double x =
        rank.steps.empty() ? SecondsSince(rank.training.begin_ns, point.t_ns) : point.x;
    held.push_back({.t_ns = point.t_ns, .x = x, .value = point.allocated});
  }
  return held;
}

std::vector<LevelPoint> LevelPoints(const RankFacts& rank, const model::Curve& curve) {
  std::vector<LevelPoint> points;
  const model::SeriesColumn& column = curve.points;
  const int64_t from = CountsFrom(rank);
  Along along(rank);
  for (size_t i = 0; i < column.t_ns.size(); ++i) {
    const int64_t t_ns = column.t_ns[i];
    along.MoveTo(t_ns);
    const bool counts =
        rank.steps.empty() ? from <= t_ns && t_ns <= rank.training.end_ns : along.steady();
    if (!counts || !std::isfinite(column.value[i])) continue;
    const double x = rank.steps.empty() ? SecondsSince(rank.training.begin_ns, t_ns) : along.done();
    points.push_back({.t_ns = t_ns, .x = x, .value = column.value[i]});
  }
  return points;
}

std::optional<double> StepNeed(std::span<const AllocatorPoint> points) {
  std::optional<double> need;
  for (size_t i = 0; i < points.size(); ++i) {
    const AllocatorPoint& now = points[i];
    // A peak that did not move says nothing of this step.
    if (!std::isfinite(now.peak) || (i > 0 && points[i - 1].peak == now.peak)) continue;
    const double before = i > 0 ? points[i - 1].allocated : now.allocated;
    const double rose = now.peak - before;
    if (rose >= 0) need = std::max(need.value_or(0), rose);
  }
  return need;
}

std::optional<int32_t> AllocatorGpu(const Facts& facts, const RankFacts& rank) {
  if (rank.gpus.size() == 1) return rank.gpus.front();
  const model::Curve* curve = facts.FrameworkCurve(rank, "allocated_bytes");
  if (curve == nullptr || rank.gpus.empty()) return {};
  // "gpu:1" is the second that the process sees.
  const std::string_view device = Find(facts.run().entities[curve->entity].attributes, "device");
  const size_t colon = device.find(':');
  if (colon == std::string_view::npos) return {};
  const auto place = base::ParseUint(device.substr(colon + 1));
  if (!place || *place >= rank.gpus.size()) return {};
  return rank.gpus[*place];
}

std::optional<double> LastOf(const model::Curve* curve) {
  if (curve == nullptr) return {};
  const auto& values = curve->points.value;
  const auto last = std::find_if(values.rbegin(), values.rend(),
                                 [](double value) { return std::isfinite(value); });
  return last == values.rend() ? std::nullopt : std::optional(*last);
}

std::optional<double> HighestOf(const model::Curve* curve) {
  if (curve == nullptr) return {};
  std::optional<double> highest;
  for (const double value : curve->points.value) {
    if (std::isfinite(value)) highest = std::max(highest.value_or(value), value);
  }
  return highest;
}

std::optional<DeviceRoom> RoomOf(const Facts& facts, int32_t gpu) {
  const std::optional<double> total = LastOf(facts.GpuCurve(gpu, "memory_total_bytes"));
  if (!total || *total <= 0) return {};
  const double kept = LastOf(facts.GpuCurve(gpu, "memory_reserved_bytes")).value_or(0);
  return DeviceRoom{.limit_bytes = *total - kept,
                    .used_bytes = LastOf(facts.GpuCurve(gpu, "memory_used_bytes"))};
}

std::optional<double> BesideAllocator(const Facts& facts, const RankFacts& rank, int32_t gpu) {
  const model::Curve* used = facts.GpuCurve(gpu, "memory_used_bytes");
  const model::Curve* reserved = facts.FrameworkCurve(rank, "reserved_bytes");
  if (used == nullptr || reserved == nullptr) return {};
  std::vector<double> beside;
  const auto& own = reserved->points;
  size_t at = 0;
  for (size_t i = 0; i < used->points.t_ns.size(); ++i) {
    while (at < own.t_ns.size() && own.t_ns[at] <= used->points.t_ns[i]) ++at;
    if (at == 0 || at == own.t_ns.size() || own.value[at] != own.value[at - 1]) continue;
    const double rest = used->points.value[i] - own.value[at - 1];
    if (std::isfinite(rest) && rest >= 0) beside.push_back(rest);
  }
  std::sort(beside.begin(), beside.end());
  return Percentile(beside, 0.5);
}

int64_t StepNumber(const TrainStep& step, size_t place) {
  return step.step != model::kNotKnown ? step.step : static_cast<int64_t>(place);
}

std::optional<double> StepsAnEpoch(const RankFacts& rank) {
  std::vector<double> counts;
  for (const model::EpochRow* row : rank.rows) {
    if (row->epoch == model::kNoEpoch || !row->complete || row->steps == 0) continue;
    counts.push_back(static_cast<double>(row->steps));
  }
  std::sort(counts.begin(), counts.end());
  return Percentile(counts, 0.5);
}

model::Message SayRate(const Trend& trend, double units, const model::Message& per) {
  const std::string rate = SayBytes(trend.slope * units);
  const std::string low = SayBytes(trend.slope_low * units);
  const std::string high = SayBytes(trend.slope_high * units);
  model::Message said{.en = rate + " " + per.en, .zh = per.zh + " " + rate};
  if (low == rate && high == rate) return said;
  said.en += fmt::format(" ({} to {})", low, high);
  said.zh += fmt::format("（{} 至 {}）", low, high);
  return said;
}

void FoldRanks(std::string_view figure, std::vector<model::Finding>* findings) {
  constexpr size_t kMostFindings = 8;
  if (findings->size() <= kMostFindings) return;
  const auto badness = [figure](const model::Finding& finding) {
    if (finding.evidence.empty()) return 0.0;
    for (const auto& [name, value] : finding.evidence.front().values) {
      if (name == figure) return value;
    }
    return 0.0;
  };
  const auto worst = std::max_element(
      findings->begin(), findings->end(),
      [&](const model::Finding& a, const model::Finding& b) { return badness(a) < badness(b); });
  const model::Message also = Say(" {} ranks in all have this; shown is the worst.",
                                  "共有 {} 个 rank 如此，这里是最严重的一个。", findings->size());
  model::Finding one = std::move(*worst);
  one.summary.en += also.en;
  one.summary.zh += also.zh;
  findings->assign(1, std::move(one));
}

}  // namespace epochmeter::diagnose
