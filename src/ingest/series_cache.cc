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
                                    int64_t period_ns) {
  const auto [place, fresh] = series_.try_emplace({entity, &metric});
  if (fresh) place->second = registry_.AddSeries(entity, metric, period_ns);
  return place->second;
}

void SeriesCache::Put(model::EntityId entity, const model::MetricDef& metric, int64_t period_ns,
                      double value, double least, double most, model::Samples& out) {
  if (std::isnan(value)) return;
  if (value < least || value > most) {
    losses_.Add(kOutOfRange, 1, out.t_ns, metric.field);
    return;
  }
  out.values.push_back({.series = Series(entity, metric, period_ns), .value = value});
}

}  // namespace epochmeter::ingest
