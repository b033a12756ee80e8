// SPDX-License-Identifier: Apache-2.0
// Gives entities and series their ids and tells the sink of each new one, once. The same (scope,
// name) or (entity, metric, label) always gets the same id; its period only rises. One thread.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "model/record.h"
#include "model/sink.h"

namespace epochmeter::model {

class Registry {
 public:
  // Borrows the sink.
  explicit Registry(Sink& sink) : sink_(sink) {}
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // `def.id` is ignored. An entity that is known keeps its first labels and attributes, unless
  // attributes grew or changed: then the new definition is written under the same id.
  EntityId AddEntity(EntityDef def);
  SeriesId AddSeries(EntityId entity, const MetricDef& metric, int64_t period_ns);
  SeriesId AddSeries(EntityId entity, const MetricInfo& metric, int64_t period_ns);

  const EntityDef& entity(EntityId id) const { return entities_.at(id); }
  const SeriesDef& series(SeriesId id) const { return series_.at(id); }
  const std::vector<EntityDef>& entities() const { return entities_; }
  const std::vector<SeriesDef>& all_series() const { return series_; }

 private:
  Sink& sink_;
  std::vector<EntityDef> entities_;
  std::vector<SeriesDef> series_;
  std::map<std::pair<Scope, std::string>, EntityId> entity_ids_;
  std::map<std::tuple<EntityId, std::string, std::string>, SeriesId> series_ids_;
};

// Passes on the records of another process or file with its ids replaced by ours: a restarted
// sampler starts from id 0 again, and so does each imported file. Records that name an id which was
// never defined are dropped and counted in `unknown_ids`.
class RemapSink : public Sink {
 public:
  RemapSink(Registry& registry, Sink& out) : registry_(registry), out_(out) {}
  void Write(const Record& record) override;
  uint64_t unknown_ids() const { return unknown_ids_; }

 private:
  void WriteSamples(const Samples& samples);
  Registry& registry_;
  Sink& out_;
  std::map<EntityId, EntityId> entities_;
  std::map<SeriesId, SeriesId> series_;
  uint64_t unknown_ids_ = 0;
};

}  // namespace epochmeter::model
