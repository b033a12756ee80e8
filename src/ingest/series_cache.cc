// SPDX-License-Identifier: Apache-2.0
#include "ingest/series_cache.h"

#include <cmath>

namespace epochmeter::ingest {
namespace {

constexpr LossReason kOutOfRange{
    "value.out_of_range", model::LossSeverity::kDataLoss, "values",
    "The driver or the file gave numbers that no device can have; they were left out."};

}  // namespace

model::SeriesId SeriesCache::Series(model::EntityId entity, const model::MetricDef& metric,
                                    int64_t period_ns, std::string_view source) {
  const auto [place, fresh] = series_.try_emplace({entity, &metric});
  if (!fresh) return place->second;
  model::MetricInfo info = model::InfoOf(metric);
  if (!source.empty()) info.source = source;
  return place->second = registry_.AddSeries(entity, info, period_ns);
}

bool SeriesCache::Put(model::EntityId entity, const model::MetricDef& metric, int64_t period_ns,
                      double value, double least, double most, model::Samples& out) {
  if (std::isnan(value)) return true;
  if (value < least || value > most) {
    losses_.Add(kOutOfRange, 1, out.t_ns, metric.field);
    return false;
  }
  out.values.push_back({.series = Series(entity, metric, period_ns), .value = value});
  return true;
}

}  // namespace epochmeter::ingest
