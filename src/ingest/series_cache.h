// SPDX-License-Identifier: Apache-2.0
// Values of an importer on their way into samples: series made at their first value, numbers that
// no device can have left out and counted.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "ingest/losses.h"
#include "model/registry.h"

namespace epochmeter::ingest {

// Metrics are known by their address. One thread. Borrows everything.
class SeriesCache {
 public:
  SeriesCache(model::Registry& registry, LossCounter& losses)
      : registry_(registry), losses_(losses) {}

  // NaN is "no value" and leaves a gap; what lies outside of [least, most] is counted as Loss and
  // gives false.
  bool Put(model::EntityId entity, const model::MetricDef& metric, int64_t period_ns, double value,
           double least, double most, model::Samples& out);
  // `source`, where one is given, stands in place of the metric's own.
  model::SeriesId Series(model::EntityId entity, const model::MetricDef& metric, int64_t period_ns,
                         std::string_view source = {});

  model::Registry& registry() { return registry_; }

 private:
  model::Registry& registry_;
  LossCounter& losses_;
  std::map<std::pair<model::EntityId, const model::MetricDef*>, model::SeriesId> series_;
};

inline constexpr double kMostBytes = 1125899906842624.0;  // 1 PiB; "no value" numbers lie above
inline constexpr double kMostCount = 9007199254740992.0;  // exact in a double

}  // namespace epochmeter::ingest
