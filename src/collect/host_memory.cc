// SPDX-License-Identifier: Apache-2.0
// Memory and swap of the host, from /proc/meminfo.
#include <array>
#include <memory>

#include "collect/host_sources.h"
#include "collect/proc_file.h"
#include "model/host_metrics.h"

namespace epochmeter::collect {

namespace {

constexpr std::array<model::MetricDef, 5> kMetrics = {
    model::host::kMemoryTotal, model::host::kMemoryAvailable, model::host::kMemoryCached,
    model::host::kSwapTotal, model::host::kSwapFree};
// The line of each metric.
constexpr std::array<std::string_view, kMetrics.size()> kKeys = {
    "MemTotal:", "MemAvailable:", "Cached:", "SwapTotal:", "SwapFree:"};

class HostMemory : public Source {
 public:
  explicit HostMemory(const SourceContext& context)
      : states_(context.sink), file_(context.env.proc_root + "/meminfo") {
    const model::EntityId host = context.registry.AddEntity(
        {.id = 0, .scope = model::Scope::kHost, .name = "host", .labels = {}, .attributes = {}});
    const int64_t period_ns = TierPeriodNs(Tier::kTick, context.tick_ns);
    for (size_t i = 0; i < kMetrics.size(); ++i) {
      series_[i] = context.registry.AddSeries(host, kMetrics[i], period_ns);
    }
  }

  // A line reads "MemTotal:       131981020 kB".
  base::Result<> Sample(model::Samples& out) override {
    EPM_ASSIGN(std::string_view text, file_.Read());
    std::array<bool, kMetrics.size()> seen{};
    std::string_view line;
    while (NextLine(text, line)) {
      std::string_view key;
      if (!NextWord(line, key)) continue;
      for (size_t i = 0; i < kKeys.size(); ++i) {
        if (key != kKeys[i]) continue;
        const auto kib = NextUint(line);
        if (!kib) break;
        seen[i] = true;
        out.values.push_back({.series = series_[i], .value = static_cast<double>(*kib) * 1024});
        break;
      }
    }
    for (size_t i = 0; i < kKeys.size(); ++i) {
      const std::string detail = seen[i] ? "" : file_.path() + ": no " + std::string(kKeys[i]);
      states_.Set(out.t_ns, series_[i],
                  seen[i] ? model::SeriesCondition::kOk : model::SeriesCondition::kNotSupported,
                  detail);
    }
    return {};
  }

 private:
  SeriesStates states_;
  HotFile file_;
  std::array<model::SeriesId, kMetrics.size()> series_{};
};

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  HotFile file(context.env.proc_root + "/meminfo");
  EPM_TRY(file.Read());
  return std::unique_ptr<Source>(std::make_unique<HostMemory>(context));
}

}  // namespace

const SourceDef kHostMemory = {.name = "host.memory",
                               .summary = "Memory and swap of the host",
                               .metrics = kMetrics,
                               .tier = Tier::kTick,
                               .vital = true,
                               .Make = &Make};

}  // namespace epochmeter::collect
