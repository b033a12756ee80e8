// SPDX-License-Identifier: Apache-2.0
// What rows of many runs come to: their order, and profiles of those of one kind.
#include <algorithm>
#include <array>
#include <map>

#include "diagnose/run_row.h"
#include "diagnose/statistics.h"

namespace epochmeter::diagnose {
namespace {

using model::ProfileFigure;
using model::RunProfile;
using model::RunRow;

using Value = std::optional<double> (*)(const RunRow&);

std::optional<double> PerGpu(const std::optional<double>& value, const RunRow& row) {
  if (!value || row.gpus == 0) return {};
  return *value / static_cast<double>(row.gpus);
}

struct FieldDef {
  std::string_view field;
  Value Get;
};
constexpr FieldDef kFields[] = {
    {"gpus",
     [](const RunRow& row) -> std::optional<double> {
       if (row.gpus == 0) return {};
       return static_cast<double>(row.gpus);
     }},
    {"duration_s", [](const RunRow& row) { return row.duration_s; }},
    {"gpu_memory_peak_bytes", [](const RunRow& row) { return row.gpu_memory_peak_bytes; }},
    {"utilization_ratio", [](const RunRow& row) { return row.utilization_ratio; }},
    {"sm_active_ratio", [](const RunRow& row) { return row.sm_active_ratio; }},
    {"data_wait_ratio", [](const RunRow& row) { return row.data_wait_ratio; }},
    {"cpu_per_gpu_cores", [](const RunRow& row) { return PerGpu(row.cpu_cores, row); }},
    {"memory_peak_per_gpu_bytes",
     [](const RunRow& row) { return PerGpu(row.memory_peak_bytes, row); }},
    {"read_per_gpu_bytes_per_s",
     [](const RunRow& row) { return PerGpu(row.read_bytes_per_s, row); }},
    {"written_per_gpu_bytes_per_s",
     [](const RunRow& row) { return PerGpu(row.written_bytes_per_s, row); }},
    {"energy_per_gpu_j", [](const RunRow& row) { return PerGpu(row.energy_j, row); }},
};

RunProfile ProfileOf(const std::string& name, const std::vector<const RunRow*>& rows) {
  RunProfile profile{.name = name, .runs = rows.size(), .figures = {}};
  for (const FieldDef& def : kFields) {
    std::vector<double> values;
    for (const RunRow* row : rows) {
      if (const auto value = def.Get(*row)) values.push_back(*value);
    }
    if (values.empty()) continue;
    std::sort(values.begin(), values.end());
    profile.figures.push_back({.field = std::string(def.field),
                               .runs = values.size(),
                               .p50 = Percentile(values, 0.5).value_or(0),
                               .p95 = Percentile(values, 0.95).value_or(0),
                               .max = values.back()});
  }
  return profile;
}

// What the first of a sorted table has most of.
struct SortDef {
  std::string_view key;
  Value Get;
};
constexpr std::array<SortDef, 10> kSorts = {{
    {"started",
     [](const RunRow& row) -> std::optional<double> {
       if (!row.started_wall_ns) return {};
       return static_cast<double>(*row.started_wall_ns);
     }},
    {"duration", [](const RunRow& row) { return row.duration_s; }},
    {"utilization",
     [](const RunRow& row) -> std::optional<double> {
       if (!row.utilization_ratio) return {};
       return -*row.utilization_ratio;
     }},
    {"sm",
     [](const RunRow& row) -> std::optional<double> {
       if (!row.sm_active_ratio) return {};
       return -*row.sm_active_ratio;
     }},
    {"memory", [](const RunRow& row) { return row.gpu_memory_peak_bytes; }},
    {"wait", [](const RunRow& row) { return row.data_wait_ratio; }},
    {"io", [](const RunRow& row) { return row.iowait_ratio; }},
    {"waste", [](const RunRow& row) { return row.waste_gpu_s; }},
    {"energy", [](const RunRow& row) { return row.energy_j; }},
    {"findings",
     [](const RunRow& row) -> std::optional<double> {
       if (!row.error.empty()) return {};
       return static_cast<double>(row.criticals) * 1e6 + static_cast<double>(row.warnings);
     }},
}};

}  // namespace

std::vector<RunProfile> ProfilesOf(const std::vector<RunRow>& rows) {
  std::map<std::string, std::vector<const RunRow*>> kinds;
  for (const RunRow& row : rows) {
    const std::string& kind = row.name.empty() ? row.command : row.name;
    if (row.error.empty() && !kind.empty()) kinds[kind].push_back(&row);
  }
  std::vector<RunProfile> profiles;
  for (const auto& [name, of_kind] : kinds) profiles.push_back(ProfileOf(name, of_kind));
  std::stable_sort(profiles.begin(), profiles.end(),
                   [](const RunProfile& a, const RunProfile& b) { return a.runs > b.runs; });
  return profiles;
}

bool SortRows(std::string_view key, std::vector<RunRow>* rows) {
  if (key == "name") {
    std::stable_sort(rows->begin(), rows->end(), [](const RunRow& a, const RunRow& b) {
      return std::pair(!a.error.empty(), a.name) < std::pair(!b.error.empty(), b.name);
    });
    return true;
  }
  const auto def = std::find_if(kSorts.begin(), kSorts.end(),
                                [key](const SortDef& known) { return known.key == key; });
  if (def == kSorts.end()) return false;
  std::stable_sort(rows->begin(), rows->end(), [&](const RunRow& a, const RunRow& b) {
    const auto place = [&](const RunRow& row) {
      const std::optional<double> value = def->Get(row);
      return std::pair(!value.has_value(), -value.value_or(0));
    };
    return place(a) < place(b);
  });
  return true;
}

std::vector<std::string_view> RunSortKeys() {
  std::vector<std::string_view> keys = {"name"};
  for (const SortDef& def : kSorts) keys.push_back(def.key);
  return keys;
}

}  // namespace epochmeter::diagnose
