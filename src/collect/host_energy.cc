// SPDX-License-Identifier: Apache-2.0
// Energy of CPU packages and memory from RAPL, which AMD's CPUs have under the same name. Since
// Linux 5.10 only root may read it, unless the administrator opened it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/file.h"
#include "base/strings.h"
#include "collect/host_sources.h"
#include "collect/proc_dir.h"
#include "collect/proc_file.h"

namespace epochmeter::collect {

namespace {

constexpr std::array<model::MetricDef, 1> kMetrics = {model::Metric(
    {"host.energy", "", "energy_j", "host_energy_joules_total", "J", model::MetricKind::kCounter,
     model::Scope::kHost, 1e-3,
     "Energy of the zone since some time before the run; a package holds its cores, and where the "
     "platform says so its memory.",
     "/sys/class/powercap"})};

struct Zone {
  HotFile energy;
  uint64_t range_uj = 0;  // where the counter begins again at 0
  uint64_t last_uj = 0;
  uint64_t base_uj = 0;
  model::SeriesId series = 0;
};

class HostEnergy : public Source {
 public:
  HostEnergy(const SourceContext& context, const std::string& folder,
             const std::vector<std::string>& zones)
      : states_(context.sink) {
    for (const std::string& name : zones) {
      const std::string path = folder + "/" + name;
      Zone zone{.energy = HotFile(path + "/energy_uj", 64)};
      zone.range_uj = NumberIn(path + "/max_energy_range_uj");
      const auto title = base::ReadFile(path + "/name", 256);
      const model::EntityId entity = context.registry.AddEntity(
          {.id = 0,
           .scope = model::Scope::kHost,
           .name = "energy:" + name.substr(name.find(':') + 1),
           .labels = {{"zone", title.ok() ? std::string(base::Trim(*title)) : name},
                      {"zone_id", name.substr(name.find(':') + 1)}},
           .attributes = {}});
      zone.series = context.registry.AddSeries(entity, kMetrics[0],
                                               TierPeriodNs(Tier::kSlow, context.tick_ns));
      zones_.push_back(std::move(zone));
    }
  }

  // A counter wraps after some minutes at full power, so that one wrap at most is between readings.
  base::Result<> Sample(model::Samples& out) override {
    for (Zone& zone : zones_) {
      auto text = zone.energy.Read();
      const auto energy_uj = text.ok() ? NextUint(*text) : std::nullopt;
      if (!energy_uj) {
        states_.Set(out.t_ns, zone.series,
                    text.ok() ? model::SeriesCondition::kError : ConditionOf(text.error().code),
                    text.ok() ? zone.energy.path() + ": not understood"
                              : text.error().Message() +
                                    " (root only since Linux 5.10; an administrator may allow it: "
                                    "chmod a+r)");
        continue;
      }
      if (*energy_uj < zone.last_uj) zone.base_uj += zone.range_uj;
      zone.last_uj = *energy_uj;
      states_.Set(out.t_ns, zone.series, model::SeriesCondition::kOk);
      out.values.push_back(
          {.series = zone.series, .value = static_cast<double>(zone.base_uj + *energy_uj) * 1e-6});
    }
    return {};
  }

 private:
  static uint64_t NumberIn(const std::string& path) {
    const auto text = base::ReadFile(path, 64);
    return text.ok() ? base::ParseUint(base::Trim(*text)).value_or(0) : 0;
  }

  SeriesStates states_;
  std::vector<Zone> zones_;
};

// "intel-rapl:0" is a package, "intel-rapl:0:1" a part of it; "intel-rapl-mmio:0" shows the first
// again.
base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  const std::string folder = context.env.sys_root + "/class/powercap";
  std::vector<std::string> zones;
  const Dir dir(::opendir(folder.c_str()));
  while (dir != nullptr) {
    const dirent* entry = ::readdir(dir.get());
    if (entry == nullptr) break;
    if (base::StartsWith(entry->d_name, "intel-rapl:")) zones.emplace_back(entry->d_name);
  }
  if (zones.empty()) {
    return base::Error{.what = "no energy counters of CPUs",
                       .where = folder + "/intel-rapl:*",
                       .why = "the kernel shows none, as in most virtual machines",
                       .what_to_do = ""};
  }
  std::sort(zones.begin(), zones.end());
  return std::unique_ptr<Source>(std::make_unique<HostEnergy>(context, folder, zones));
}

}  // namespace

const SourceDef kHostEnergy = {.name = "host.energy",
                               .summary = "Energy of CPU packages and memory (RAPL)",
                               .metrics = kMetrics,
                               .tier = Tier::kSlow,
                               .Make = &Make};

}  // namespace epochmeter::collect
