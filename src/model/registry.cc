// SPDX-License-Identifier: Apache-2.0
#include "model/registry.h"

namespace epochmeter::model {

EntityId Registry::AddEntity(EntityDef def) {
  const auto key = std::make_pair(def.scope, def.name);
  const auto found = entity_ids_.find(key);
  if (found == entity_ids_.end()) {
    def.id = static_cast<EntityId>(entities_.size());
    entity_ids_.emplace(key, def.id);
    entities_.push_back(def);
    sink_.Write(def);
    return def.id;
  }
  EntityDef& known = entities_[found->second];
  if (!def.attributes.empty() && def.attributes != known.attributes) {
    known.attributes = std::move(def.attributes);
    sink_.Write(known);
  }
  return known.id;
}

SeriesId Registry::AddSeries(EntityId entity, const MetricDef& metric, int64_t period_ns) {
  return AddSeries(entity, InfoOf(metric), period_ns);
}

SeriesId Registry::AddSeries(EntityId entity, const MetricInfo& metric, int64_t period_ns) {
  const auto key = std::make_tuple(entity, metric.name, metric.label);
  const auto found = series_ids_.find(key);
  if (found != series_ids_.end()) {
    // A shorter one would make gaps of the samples that were taken in the longer one.
    SeriesDef& known = series_[found->second];
    if (known.period_ns > 0 && period_ns > known.period_ns) {
      known.period_ns = period_ns;
      sink_.Write(known);
    }
    return found->second;
  }
  SeriesDef def{.id = static_cast<SeriesId>(series_.size()),
                .entity = entity,
                .period_ns = period_ns,
                .metric = metric};
  series_ids_.emplace(key, def.id);
  series_.push_back(def);
  sink_.Write(def);
  return def.id;
}

void RemapSink::WriteSamples(const Samples& samples) {
  Samples mapped{.t_ns = samples.t_ns, .values = {}};
  mapped.values.reserve(samples.values.size());
  for (const SampleValue& sample : samples.values) {
    const auto found = series_.find(sample.series);
    if (found == series_.end()) {
      ++unknown_ids_;
    } else {
      mapped.values.push_back({.series = found->second, .value = sample.value});
    }
  }
  if (!mapped.values.empty()) out_.Write(mapped);
}

void RemapSink::Write(const Record& record) {
  if (const auto* entity = std::get_if<EntityDef>(&record)) {
    entities_[entity->id] = registry_.AddEntity(*entity);
  } else if (const auto* series = std::get_if<SeriesDef>(&record)) {
    const auto entity_id = entities_.find(series->entity);
    if (entity_id == entities_.end()) {
      ++unknown_ids_;
      return;
    }
    series_[series->id] = registry_.AddSeries(entity_id->second, series->metric, series->period_ns);
  } else if (const auto* samples = std::get_if<Samples>(&record)) {
    WriteSamples(*samples);
  } else if (const auto* state = std::get_if<SeriesState>(&record)) {
    const auto found = series_.find(state->series);
    if (found == series_.end()) {
      ++unknown_ids_;
      return;
    }
    SeriesState mapped = *state;
    mapped.series = found->second;
    out_.Write(mapped);
  } else {
    out_.Write(record);
  }
}

}  // namespace epochmeter::model
