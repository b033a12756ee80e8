// SPDX-License-Identifier: Apache-2.0
// Pressure stall information of the host: time in which some or all tasks waited for a resource.
#include <array>
#include <memory>

#include "collect/host_sources.h"
#include "collect/pressure_file.h"

namespace epochmeter::collect {

namespace {

consteval model::MetricDef Pressure(std::string_view name, std::string_view field,
                                    std::string_view prometheus, std::string_view help) {
  return model::Metric({name, "", field, prometheus, "s", model::MetricKind::kCounter,
                        model::Scope::kHost, 1e-6, help, "/proc/pressure"});
}

// "full" of the CPU is undefined for a whole system and reads as 0, so it is no metric here.
constexpr std::array<model::MetricDef, 6> kMetrics = {
    Pressure("host.pressure.cpu.waiting", "pressure_cpu_waiting_s",
             "host_pressure_cpu_waiting_seconds_total",
             "Time in which at least one task waited for a CPU."),
    Pressure("host.pressure.memory.waiting", "pressure_memory_waiting_s",
             "host_pressure_memory_waiting_seconds_total",
             "Time in which at least one task waited for memory."),
    Pressure("host.pressure.memory.stalled", "pressure_memory_stalled_s",
             "host_pressure_memory_stalled_seconds_total",
             "Time in which all tasks that could run waited for memory."),
    Pressure("host.pressure.io.waiting", "pressure_io_waiting_s",
             "host_pressure_io_waiting_seconds_total",
             "Time in which at least one task waited for I/O."),
    Pressure("host.pressure.io.stalled", "pressure_io_stalled_s",
             "host_pressure_io_stalled_seconds_total",
             "Time in which all tasks that could run waited for I/O."),
    Pressure("host.pressure.irq.stalled", "pressure_irq_stalled_s",
             "host_pressure_irq_stalled_seconds_total",
             "Time in which interrupts kept tasks from running."),
};

// Which file and line each metric comes from.
struct Place {
  size_t file;
  std::string_view line;
};
constexpr std::array<std::string_view, 4> kFiles = {"cpu", "memory", "io", "irq"};
constexpr std::string_view kNeedsPsi = " (the kernel needs CONFIG_PSI, perhaps psi=1)";
constexpr std::array<std::string_view, 4> kNeeds = {
    kNeedsPsi, kNeedsPsi, kNeedsPsi, " (the kernel needs CONFIG_PSI and IRQ_TIME_ACCOUNTING)"};
constexpr std::array<Place, kMetrics.size()> kPlaces = {Place{0, "some"}, Place{1, "some"},
                                                        Place{1, "full"}, Place{2, "some"},
                                                        Place{2, "full"}, Place{3, "full"}};

class HostPressure : public Source {
 public:
  explicit HostPressure(const SourceContext& context) : states_(context.sink) {
    const model::EntityId host = context.registry.AddEntity(
        {.id = 0, .scope = model::Scope::kHost, .name = "host", .labels = {}, .attributes = {}});
    const int64_t period_ns = TierPeriodNs(Tier::kTick, context.tick_ns);
    for (size_t i = 0; i < kMetrics.size(); ++i) {
      series_[i] = context.registry.AddSeries(host, kMetrics[i], period_ns);
    }
    for (const std::string_view file : kFiles) {
      files_.emplace_back(context.env.proc_root + "/pressure/" + std::string(file));
    }
  }

  // Old kernels lack the files or lines; with CONFIG_PSI_DEFAULT_DISABLED open or read fails.
  base::Result<> Sample(model::Samples& out) override {
    for (size_t file = 0; file < kFiles.size(); ++file) {
      const auto text = files_[file].Read();
      for (size_t i = 0; i < kPlaces.size(); ++i) {
        if (kPlaces[i].file != file) continue;
        if (text.ok()) {
          Take(i, *text, out);
        } else {
          const base::Error& error = text.error();
          states_.Set(out.t_ns, series_[i], ConditionOf(error.code),
                      error.Message() + std::string(kNeeds[file]));
        }
      }
    }
    return {};
  }

 private:
  void Take(size_t metric, std::string_view text, model::Samples& out) {
    const std::string_view line = kPlaces[metric].line;
    const auto total_us = PressureTotalUs(text, line);
    if (!total_us) {
      states_.Set(out.t_ns, series_[metric], model::SeriesCondition::kNotSupported,
                  files_[kPlaces[metric].file].path() + ": no line \"" + std::string(line) + "\"");
      return;
    }
    states_.Set(out.t_ns, series_[metric], model::SeriesCondition::kOk);
    out.values.push_back(
        {.series = series_[metric], .value = static_cast<double>(*total_us) * 1e-6});
  }

  SeriesStates states_;
  std::array<model::SeriesId, kMetrics.size()> series_{};
  std::vector<HotFile> files_;
};

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  return std::unique_ptr<Source>(std::make_unique<HostPressure>(context));
}

}  // namespace

const SourceDef kHostPressure = {.name = "host.pressure",
                                 .summary = "Time in which tasks waited for CPU, memory or I/O",
                                 .metrics = kMetrics,
                                 .tier = Tier::kTick,
                                 .Make = &Make};

}  // namespace epochmeter::collect
