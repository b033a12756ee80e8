// SPDX-License-Identifier: Apache-2.0
#include "diagnose/curves.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/strings.h"
#include "diagnose/own_gpus.h"
#include "model/m4.h"

namespace epochmeter::diagnose {
namespace {

using model::Curve;
using model::Interval;
using model::SeriesColumn;
using model::Summary;

constexpr size_t kExactSamples = 4 * static_cast<size_t>(model::kCurveBuckets);

void AddPoint(int64_t t_ns, double value, SeriesColumn* points) {
  points->t_ns.push_back(t_ns);
  points->value.push_back(value);
}

// Growth per second between readings, at the later one; a fall has none.
SeriesColumn RateOf(const SeriesColumn& counter) {
  SeriesColumn rate;
  for (size_t i = 1; i < counter.t_ns.size(); ++i) {
    const int64_t distance = counter.t_ns[i] - counter.t_ns[i - 1];
    const double growth = counter.value[i] - counter.value[i - 1];
    if (distance <= 0 || !(growth >= 0)) continue;
    AddPoint(counter.t_ns[i], growth / base::SecondsFromNs(distance), &rate);
  }
  return rate;
}

std::string RateUnit(const std::string& unit) { return unit == "s" ? "1" : unit + "/s"; }

// The series with this field of the host.
const model::SeriesDef* HostSeries(const model::Run& run, std::string_view field) {
  for (const model::EntityDef* entity : run.EntitiesOf(model::Scope::kHost)) {
    if (const auto id = run.FindSeries(entity->id, field)) return &run.series[*id];
  }
  return nullptr;
}

void AddDerived(const SeriesReader& reader, const model::SeriesDef& like, std::string field,
                std::string unit, const SeriesColumn& column, std::vector<Curve>* curves) {
  if (column.t_ns.empty()) return;
  Curve curve{.entity = like.entity,
              .field = std::move(field),
              .unit = std::move(unit),
              .period_ns = like.period_ns,
              .derived = true};
  FillCurve(column, reader.run().span, &curve);
  curves->push_back(std::move(curve));
}

// Sums of counters that are read together, by the instants of the first.
class CpuTimes {
 public:
  explicit CpuTimes(SeriesColumn idle) : t_ns_(std::move(idle.t_ns)), all_(std::move(idle.value)) {
    busy_.resize(t_ns_.size());
  }
  // A mode that was read at other instants is left out of both.
  void Add(const SeriesColumn& mode, bool busy) {
    if (mode.t_ns != t_ns_) return;
    for (size_t i = 0; i < t_ns_.size(); ++i) {
      all_[i] += mode.value[i];
      if (busy) busy_[i] += mode.value[i];
    }
  }
  // Growth of `part` by that of all modes, at the later reading.
  SeriesColumn Ratio(const std::vector<double>& part) const {
    SeriesColumn ratio;
    for (size_t i = 1; i < t_ns_.size(); ++i) {
      const double all = all_[i] - all_[i - 1];
      const double grown = part[i] - part[i - 1];
      if (all > 0) AddPoint(t_ns_[i], std::clamp(grown / all, 0.0, 1.0), &ratio);
    }
    return ratio;
  }
  const std::vector<double>& busy() const { return busy_; }
  const std::vector<int64_t>& t_ns() const { return t_ns_; }

 private:
  std::vector<int64_t> t_ns_;
  std::vector<double> all_, busy_;
};

void AddCpuCurves(const SeriesReader& reader, std::vector<Curve>* curves) {
  const model::SeriesDef* idle = HostSeries(reader.run(), "cpu_idle_s");
  if (idle == nullptr) return;
  CpuTimes times(reader.Read(idle->id));
  SeriesColumn iowait;
  for (const CpuMode& mode : CpuModes()) {
    if (mode.field == "cpu_idle_s") continue;
    const model::SeriesDef* series = HostSeries(reader.run(), mode.field);
    if (series == nullptr) continue;
    SeriesColumn column = reader.Read(series->id);
    times.Add(column, mode.busy);
    if (mode.field == "cpu_iowait_s") iowait = std::move(column);
  }
  AddDerived(reader, *idle, "cpu_ratio", "1", times.Ratio(times.busy()), curves);
  if (iowait.t_ns != times.t_ns() || iowait.t_ns.empty()) return;
  AddDerived(reader, *idle, "iowait_ratio", "1", times.Ratio(iowait.value), curves);
}

void AddUsedCurve(const SeriesReader& reader, std::string_view total_field,
                  std::string_view free_field, std::string_view used_field,
                  std::vector<Curve>* curves) {
  const model::SeriesDef* total = HostSeries(reader.run(), total_field);
  const model::SeriesDef* free = HostSeries(reader.run(), free_field);
  if (total == nullptr || free == nullptr) return;
  const SeriesColumn used = UsedOf(reader.Read(total->id), reader.Read(free->id));
  AddDerived(reader, *free, std::string(used_field), "By", used, curves);
}

}  // namespace

void FillCurve(const SeriesColumn& column, Interval span, Curve* curve) {
  const int64_t length = std::max<int64_t>(span.end_ns - span.begin_ns, 1);
  curve->begin_ns = span.begin_ns;
  curve->bucket_ns = length / model::kCurveBuckets + 1;
  curve->buckets.assign(static_cast<size_t>(model::kCurveBuckets), {});
  const auto from = std::lower_bound(column.t_ns.begin(), column.t_ns.end(), span.begin_ns);
  const auto to = std::upper_bound(from, column.t_ns.end(), span.end_ns);
  const auto first = static_cast<size_t>(from - column.t_ns.begin());
  const auto end = static_cast<size_t>(to - column.t_ns.begin());
  curve->exact = end - first <= kExactSamples;
  model::M4Bucket touched;
  const auto write = [&](size_t at) {
    AddPoint(column.t_ns[at], column.value[at], &curve->points);
  };
  size_t open = 0;  // the bucket that `touched` is of
  for (size_t i = first; i < end; ++i) {
    const int64_t t_ns = column.t_ns[i];
    const double weight =
        i == 0 ? 0 : model::SampleWeightSeconds(column.t_ns[i - 1], t_ns, curve->period_ns);
    const auto bucket = static_cast<size_t>((t_ns - span.begin_ns) / curve->bucket_ns);
    if (!std::isnan(column.value[i])) curve->buckets[bucket].Add(t_ns, column.value[i], weight);
    const bool hole = i > first && weight * 1.001 < base::SecondsFromNs(t_ns - column.t_ns[i - 1]);
    if (bucket != open || hole) touched.Flush(write);
    if (hole) AddPoint(column.t_ns[i - 1] + 1, model::kAbsentNumber, &curve->points);
    open = bucket;
    if (curve->exact) {
      AddPoint(t_ns, column.value[i], &curve->points);
    } else {
      touched.Add(i, column.value);
    }
  }
  touched.Flush(write);
}

std::string RateField(std::string_view counter_field) {
  constexpr std::string_view kSeconds = "_s";
  if (!base::EndsWith(counter_field, kSeconds)) return std::string(counter_field) + "_per_s";
  const std::string stem(counter_field.substr(0, counter_field.size() - kSeconds.size()));
  const bool cpu = base::StartsWith(counter_field, "cpu_");
  if (counter_field == "cpu_s") return "cpu_cores";
  return stem + (cpu ? "_cores" : "_ratio");
}

Curve CurveOf(const model::SeriesDef& series, const SeriesColumn& column, Interval span) {
  const bool counter = series.metric.kind == model::MetricKind::kCounter;
  Curve curve{.entity = series.entity,
              .field = counter ? RateField(series.metric.field) : series.metric.field,
              .unit = counter ? RateUnit(series.metric.unit) : series.metric.unit,
              .kind = series.metric.kind,
              .period_ns = series.period_ns,
              .resolution = counter ? 0 : series.metric.resolution};
  FillCurve(counter ? RateOf(column) : column, span, &curve);
  return curve;
}

void AddCurves(const SeriesReader& reader, std::vector<Curve>* curves) {
  for (const model::SeriesDef& series : reader.run().series) {
    if (!reader.WasRead(series.id)) reader.Read(series.id);
  }
  *curves = reader.TakeCurves();
  AddCpuCurves(reader, curves);
  AddUsedCurve(reader, "memory_total_bytes", "memory_available_bytes", "memory_used_bytes", curves);
  AddUsedCurve(reader, "swap_total_bytes", "swap_free_bytes", "swap_used_bytes", curves);
}

}  // namespace epochmeter::diagnose
