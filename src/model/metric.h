// SPDX-License-Identifier: Apache-2.0
// What a metric is. A source declares its metrics as constexpr MetricDefs beside its code; a wrong
// one does not compile. The run file carries MetricInfo, the same facts with owned text, so that it
// can be read without this program's tables.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace epochmeter::model {

// Gauge: an instant or window value. Counter: only rises, deltas matter (a fall is a reset).
// Peak: a maximum since a start that the source defines; rules on growth never run on peaks.
// State: an enumeration or bit mask as a number; means are meaningless.
enum class MetricKind : uint8_t { kGauge, kCounter, kPeak, kState };
enum class Scope : uint8_t { kGpu, kMig, kHost, kCgroup, kProcess, kRank, kRun };

inline constexpr int kScopeCount = 7;
inline constexpr int kMetricKindCount = 4;

std::string_view ScopeName(Scope scope);           // "gpu"
std::string_view MetricKindName(MetricKind kind);  // "gauge"

struct MetricDef {
  std::string_view name;        // canonical dotted key, "gpu.memory.used"; never renamed
  std::string_view label;       // "" or one fixed label, "sensor=core"
  std::string_view field;       // name in reports, unit included, unique within a scope
  std::string_view prometheus;  // Prometheus name without the prefix "epochmeter_"
  std::string_view unit;        // UCUM: "1", "By", "W", "Cel", "J", "Hz", "s", "By/s", "{count}"
  MetricKind kind;
  Scope scope;
  double resolution;        // step of the stored integer; 0 stores the double as it is
  std::string_view help;    // one sentence: what the number is, its window, its caveat
  std::string_view source;  // the call or file it comes from
};

namespace internal {
constexpr bool IsKeyText(std::string_view text, std::string_view extra) {
  if (text.empty() || text.front() < 'a' || text.front() > 'z') return false;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    if (!plain && extra.find(c) == std::string_view::npos) return false;
  }
  return true;
}
// Not constexpr, so that reaching it in a consteval context is the compile error.
void InvalidMetricDef(const char* why);
}  // namespace internal

// Checks a definition at compile time and gives it back.
consteval MetricDef Metric(MetricDef def) {
  if (!internal::IsKeyText(def.name, ".")) internal::InvalidMetricDef("name");
  if (!internal::IsKeyText(def.field, "")) internal::InvalidMetricDef("field");
  if (!internal::IsKeyText(def.prometheus, "")) internal::InvalidMetricDef("prometheus");
  if (def.unit.empty() || def.help.empty() || def.source.empty()) {
    internal::InvalidMetricDef("unit, help and source are required");
  }
  if (!def.label.empty() && def.label.find('=') == std::string_view::npos) {
    internal::InvalidMetricDef("label must be key=value");
  }
  if (!(def.resolution >= 0)) internal::InvalidMetricDef("resolution");
  const bool total = def.prometheus.ends_with("_total");
  if (total != (def.kind == MetricKind::kCounter)) {
    internal::InvalidMetricDef("counters and only counters end in _total");
  }
  return def;
}

struct MetricInfo {
  std::string name;
  std::string label;
  std::string field;
  std::string prometheus;
  std::string unit;
  MetricKind kind = MetricKind::kGauge;
  Scope scope = Scope::kRun;
  double resolution = 0;
  std::string source;

  bool operator==(const MetricInfo&) const = default;
};
MetricInfo InfoOf(const MetricDef& def);

// The stored integer of `value` and back. A resolution of 0 stores the double's bits. For steps
// below one, division by the whole number of steps gives the nearest double (8600 steps of 1e-4
// read back as 0.86, not 0.8600000000000001). Values beyond int64 saturate.
int64_t RawFromValue(double value, double resolution);
double ValueFromRaw(int64_t raw, double resolution);

}  // namespace epochmeter::model
