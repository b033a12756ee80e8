// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>

#include "base/strings.h"
#include "model/entity_name.h"
#include "model/m4.h"
#include "model/rank_events.h"
#include "render/curve_ceiling.h"
#include "render/page_numbers.h"
#include "render/page_parts.h"

namespace epochmeter::render {
namespace {

using model::Curve;
using model::SeriesColumn;

constexpr double kMiddleSteps = 1e3;

// The curve's points in wider buckets. Points are the M4 of the samples, so these are, too. Of the
// holes in one bucket the first is kept.
SeriesColumn Thin(const Curve& curve, int64_t width_ns) {
  const SeriesColumn& points = curve.points;
  SeriesColumn thin;
  model::M4Bucket bucket;
  const auto keep = [&](size_t at) {
    thin.t_ns.push_back(points.t_ns[at]);
    thin.value.push_back(points.value[at]);
  };
  int64_t open = 0, torn = -1;
  for (size_t i = 0; i < points.t_ns.size(); ++i) {
    const int64_t place = (points.t_ns[i] - curve.begin_ns) / width_ns;
    const bool hole = !std::isfinite(points.value[i]);
    if (place != open || hole) bucket.Flush(keep);
    open = place;
    if (!hole) bucket.Add(i, points.value);
    if (hole && place != torn) keep(i);
    if (hole) torn = place;
  }
  bucket.Flush(keep);
  return thin;
}

// Times and values of one curve as text. Of points in a row with one value the first and the last
// are enough for a line.
struct Packed {
  std::string t, v;
  double scale = 1;
};

Packed Pack(const SeriesColumn& points, double resolution, const PageClock& clock) {
  const std::optional<double> step = StepFor(points.value, resolution, kMiddleSteps);
  DeltaArray t, v;
  // What no step fits has no line: nobody can draw 1e300 beside 1.
  const auto whole = [&](size_t i) -> std::optional<int64_t> {
    if (!step || !std::isfinite(points.value[i])) return {};
    return std::llround(points.value[i] / *step);
  };
  const size_t size = points.t_ns.size();
  std::optional<int64_t> before, now, next;
  if (size > 0) now = whole(0);
  for (size_t i = 0; i < size; ++i, before = now, now = next) {
    next = i + 1 < size ? whole(i + 1) : std::nullopt;
    if (i > 0 && i + 1 < size && before == now && now == next) continue;
    t.Add(clock.Ms(points.t_ns[i]));
    now ? v.Add(*now) : v.AddNull();
  }
  return {.t = t.Take(), .v = v.Take(), .scale = step.value_or(1)};
}

std::string LabelOf(const model::EntityDef& entity, const std::string& name) {
  if (entity.scope != model::Scope::kGpu || model::GpuIndex(entity) < 0) return name;
  return "GPU " + std::to_string(model::GpuIndex(entity));
}

bool IsProcessWithoutRank(const model::EntityDef& entity) {
  return entity.scope == model::Scope::kRank && model::Find(entity.labels, "rank").empty() &&
         !model::Find(entity.labels, "pid").empty() && model::Find(entity.labels, "device").empty();
}

// The names of a page's owners: a process without a rank, "pid:4711" to the recorder, is called as
// the page calls who trains in it, so that its memory stands beside its steps.
std::vector<std::string> OwnerNames(const model::Run& run, std::vector<std::string> names) {
  std::vector<size_t> processes;
  for (size_t i = 0; i < run.entities.size(); ++i) {
    if (IsProcessWithoutRank(run.entities[i])) processes.push_back(i);
  }
  if (processes.empty()) return names;
  const std::vector<model::RankEvents> ranks = model::SplitByRank(run);
  for (const model::RankEvents& rank : ranks) {
    if (rank.rank) continue;
    const bool alone = !rank.pid && ranks.size() == 1 && processes.size() == 1;
    for (const size_t i : processes) {
      const auto pid = base::ParseInt(model::Find(run.entities[i].labels, "pid"));
      if (alone || (rank.pid && pid == rank.pid)) {
        names[i] = model::ProcessName(rank.rank, rank.pid);
      }
    }
  }
  return names;
}

void WriteIndex(std::string_view key, std::string_view label, base::JsonWriter* json) {
  json->Field(key, base::ParseInt(label));
}

}  // namespace

bool WriteCurves(const model::Run& run, const model::Report& report, int64_t most_buckets,
                 base::JsonWriter* json) {
  const PageClock clock(run);
  const std::vector<std::string> names = model::UniqueEntityNames(run.entities);
  const std::vector<std::string> owners = OwnerNames(run, names);
  const CurveCeilings ceilings(run, report);
  bool all = true;
  json->Key("curves").BeginArray();
  for (const Curve& curve : report.curves) {
    if (curve.entity >= run.entities.size()) continue;
    const model::EntityDef& entity = run.entities[curve.entity];
    const auto merge = (model::kCurveBuckets + most_buckets - 1) / most_buckets;
    const bool few = static_cast<int64_t>(curve.points.t_ns.size()) <= 4 * most_buckets;
    const bool keep = merge <= 1 || few;
    const Packed packed =
        Pack(keep ? curve.points : Thin(curve, merge * curve.bucket_ns), curve.resolution, clock);
    all = all && curve.exact && keep;
    json->BeginObject()
        .Field("entity", owners[curve.entity])
        .Field("alias", names[curve.entity])
        .Field("label", LabelOf(entity, owners[curve.entity]))
        .Field("scope", model::ScopeName(entity.scope));
    WriteIndex("gpu", model::Find(entity.labels, "gpu"), json);
    WriteIndex("rank", model::Find(entity.labels, "rank"), json);
    json->Field("field", curve.field)
        .Field("unit", curve.unit)
        .Field("kind", model::MetricKindName(curve.kind))
        .Field("period_ms", curve.period_ns / base::kNsPerMs)
        .Field("derived", curve.derived)
        .Field("exact", curve.exact && keep)
        .Field("max", ceilings.Of(curve))
        .Field("scale", packed.scale);
    json->Key("t").Raw(packed.t).Key("v").Raw(packed.v).EndObject();
  }
  json->EndArray();
  return all;
}

}  // namespace epochmeter::render
