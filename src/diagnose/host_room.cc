// SPDX-License-Identifier: Apache-2.0
#include "diagnose/host_room.h"

#include <algorithm>
#include <cmath>

#include "diagnose/leak.h"
#include "diagnose/memory.h"

namespace epochmeter::diagnose {
namespace {

using model::Curve;
using model::Scope;

constexpr size_t kFewestEpochs = 6;  // fewer floors of epochs tell less than windows of steps do

// Program memory is all that can't give way; the working set still has active page cache in it.
const Curve* UsedInCgroup(const Facts& facts) {
  for (const char* field : {"memory_anon_bytes", "memory_working_set_bytes"}) {
    const Curve* curve = facts.FirstCurve(Scope::kCgroup, field);
    if (curve != nullptr && !curve->points.t_ns.empty()) return curve;
  }
  return nullptr;
}

}  // namespace

std::optional<HostRoom> HostRoomOf(const Facts& facts) {
  const auto total = LastOf(facts.HostCurve("memory_total_bytes"));
  const auto limit = LastOf(facts.FirstCurve(Scope::kCgroup, "memory_limit_bytes"));
  const Curve* in_cgroup = UsedInCgroup(facts);
  if (limit && *limit > 0 && in_cgroup != nullptr && *limit < total.value_or(INFINITY)) {
    const bool anon = in_cgroup->field == "memory_anon_bytes";
    return HostRoom{
        .limit_bytes = *limit,
        .used = in_cgroup,
        .shared = anon ? facts.FirstCurve(Scope::kCgroup, "memory_shmem_bytes") : nullptr,
        .of_cgroup = true};
  }
  const Curve* used = facts.HostCurve("memory_used_bytes");
  if (!total || *total <= 0 || used == nullptr) return {};
  return HostRoom{.limit_bytes = *total, .used = used};
}

// By buckets, which all curves of a run share.
std::optional<HostUse> HighestUse(const HostRoom& room) {
  std::optional<HostUse> highest;
  const auto& buckets = room.used->buckets;
  double shared = 0;  // as last read
  for (size_t i = 0; i < buckets.size(); ++i) {
    if (room.shared != nullptr && i < room.shared->buckets.size()) {
      const model::Summary& bucket = room.shared->buckets[i];
      if (bucket.count > 0 && std::isfinite(bucket.max)) shared = bucket.max;
    }
    if (buckets[i].count == 0 || !std::isfinite(buckets[i].max)) continue;
    const double bytes = buckets[i].max + shared;
    if (highest && bytes <= highest->bytes) continue;
    highest = {.bytes = bytes,
               .when = {.begin_ns = buckets[i].t_first_ns, .end_ns = buckets[i].t_last_ns}};
  }
  return highest;
}

const RankFacts& ClockOf(const Facts& facts, RankFacts* whole) {
  const auto& ranks = facts.ranks();
  const auto first = std::find_if(ranks.begin(), ranks.end(), [](const RankFacts& rank) {
    return !rank.steps.empty() && !rank.steady.empty();
  });
  if (first != ranks.end()) return *first;
  if (!ranks.empty() && ranks.front().steps.empty()) return ranks.front();
  whole->training = facts.run().Recorded();
  return *whole;
}

std::vector<model::Interval> JudgedTime(const RankFacts& clock) {
  if (!clock.steady.empty()) return clock.steady;
  return {clock.training};
}

HostGrowth JudgeHostLevel(const Facts& facts, const RankFacts& clock,
                          std::vector<LevelPoint> points, double least_bytes) {
  HostGrowth growth;
  std::vector<Floor> epochs;
  for (const EpochFloor& epoch : EpochFloors(clock, points)) epochs.push_back(epoch.floor);
  const bool by_epochs = epochs.size() >= kFewestEpochs && points.size() >= kFewestTrendSamples;
  growth.floors = by_epochs ? JoinFloors(epochs) : FloorsOf(points);
  growth.trend = JudgeFloors(growth.floors, least_bytes, facts.limits());
  if (growth.floors.empty()) return growth;
  const int64_t begin_ns = growth.floors.front().lowest.t_ns;
  const int64_t end_ns = growth.floors.back().lowest.t_ns;
  growth.interval = {.begin_ns = growth.floors.front().interval.begin_ns,
                     .end_ns = growth.floors.back().interval.end_ns};
  growth.epochs_passed = static_cast<size_t>(
      std::count_if(clock.rows.begin(), clock.rows.end(), [&](const model::EpochRow* row) {
        return row->epoch != model::kNoEpoch && begin_ns < row->end_ns && row->end_ns <= end_ns;
      }));
  return growth;
}

std::optional<double> GainOf(const Curve* curve, model::Interval interval) {
  if (curve == nullptr) return {};
  std::optional<double> first;
  double last = 0;
  size_t samples = 0;
  for (size_t i = 0; i < curve->points.t_ns.size(); ++i) {
    const double value = curve->points.value[i];
    if (!interval.Contains(curve->points.t_ns[i]) || !std::isfinite(value)) continue;
    if (!first) first = value;
    last = value;
    ++samples;
  }
  if (samples < 2) return {};
  return last - *first;
}

}  // namespace epochmeter::diagnose
