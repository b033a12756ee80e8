// SPDX-License-Identifier: Apache-2.0
#include "model/metric.h"

#include <array>

#include "base/check.h"
#include "model/steps.h"

namespace epochmeter::model {

namespace internal {
void InvalidMetricDef(const char* why) { EPM_CHECK(false) << why; }
}  // namespace internal

std::string_view ScopeName(Scope scope) {
  constexpr std::array<std::string_view, kScopeCount> kNames = {"gpu",     "mig",  "host", "cgroup",
                                                                "process", "rank", "run"};
  return kNames[static_cast<size_t>(scope)];
}

std::string_view MetricKindName(MetricKind kind) {
  constexpr std::array<std::string_view, kMetricKindCount> kNames = {"gauge", "counter", "peak",
                                                                     "state"};
  return kNames[static_cast<size_t>(kind)];
}

MetricInfo InfoOf(const MetricDef& def) {
  return {.name = std::string(def.name),
          .label = std::string(def.label),
          .field = std::string(def.field),
          .prometheus = std::string(def.prometheus),
          .unit = std::string(def.unit),
          .kind = def.kind,
          .scope = def.scope,
          .resolution = def.resolution,
          .source = std::string(def.source)};
}

int64_t RawFromValue(double value, double resolution) { return Steps(resolution).Raw(value); }
double ValueFromRaw(int64_t raw, double resolution) { return Steps(resolution).Value(raw); }

}  // namespace epochmeter::model
