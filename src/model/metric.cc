// SPDX-License-Identifier: Apache-2.0
#include "model/metric.h"

#include <array>
#include <bit>
#include <cmath>

#include "base/check.h"

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

int64_t RawFromValue(double value, double resolution) {
  if (resolution == 0) return std::bit_cast<int64_t>(value);
  const double steps = resolution < 1 ? value * std::round(1 / resolution) : value / resolution;
  if (!(steps > -9.2e18)) return INT64_MIN;
  if (!(steps < 9.2e18)) return INT64_MAX;
  return std::llround(steps);
}

double ValueFromRaw(int64_t raw, double resolution) {
  if (resolution == 0) return std::bit_cast<double>(raw);
  const auto steps = static_cast<double>(raw);
  return resolution < 1 ? steps / std::round(1 / resolution) : steps * resolution;
}

}  // namespace epochmeter::model
