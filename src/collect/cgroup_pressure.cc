// SPDX-License-Identifier: Apache-2.0
// Pressure stall information of the job's cgroup: how long the job itself waited for a resource,
// whatever the rest of the host does. cgroup v2 only.
#include <array>
#include <memory>

#include "collect/cgroup.h"
#include "collect/host_sources.h"
#include "collect/pressure_file.h"

namespace epochmeter::collect {

namespace {

consteval model::MetricDef Pressure(std::string_view name, std::string_view field,
                                    std::string_view prometheus, std::string_view help) {
  return model::Metric({name, "", field, prometheus, "s", model::MetricKind::kCounter,
                        model::Scope::kCgroup, 1e-6, help, "*.pressure"});
}
// Within a cgroup "full" of the CPU is defined: none of its tasks got one.
constexpr std::array<model::MetricDef, 6> kMetrics = {
    Pressure("cgroup.pressure.cpu.waiting", "pressure_cpu_waiting_s",
             "cgroup_pressure_cpu_waiting_seconds_total",
             "Time in which at least one task of the job waited for a CPU."),
    Pressure("cgroup.pressure.cpu.stalled", "pressure_cpu_stalled_s",
             "cgroup_pressure_cpu_stalled_seconds_total",
             "Time in which all tasks of the job that could run waited for a CPU."),
    Pressure("cgroup.pressure.memory.waiting", "pressure_memory_waiting_s",
             "cgroup_pressure_memory_waiting_seconds_total",
             "Time in which at least one task of the job waited for memory."),
    Pressure("cgroup.pressure.memory.stalled", "pressure_memory_stalled_s",
             "cgroup_pressure_memory_stalled_seconds_total",
             "Time in which all tasks of the job that could run waited for memory."),
    Pressure("cgroup.pressure.io.waiting", "pressure_io_waiting_s",
             "cgroup_pressure_io_waiting_seconds_total",
             "Time in which at least one task of the job waited for I/O."),
    Pressure("cgroup.pressure.io.stalled", "pressure_io_stalled_s",
             "cgroup_pressure_io_stalled_seconds_total",
             "Time in which all tasks of the job that could run waited for I/O."),
};
constexpr std::array<std::string_view, 3> kFiles = {"/cpu.pressure", "/memory.pressure",
                                                    "/io.pressure"};
constexpr std::array<std::string_view, 2> kLines = {"some", "full"};

class CgroupPressure : public Source {
 public:
  CgroupPressure(const SourceContext& context, JobCgroup job)
      : context_(context), job_(std::move(job)), states_(context.sink) {
    const model::EntityId entity = AddJobCgroup(context);
    for (size_t i = 0; i < kMetrics.size(); ++i) {
      series_[i] = context.registry.AddSeries(entity, kMetrics[i],
                                              TierPeriodNs(Tier::kTick, context.tick_ns));
    }
    Open();
  }

  // A kernel without PSI lacks the files; with CONFIG_PSI_DEFAULT_DISABLED the read fails.
  base::Result<> Sample(model::Samples& out) override {
    if (job_.Refresh(out.t_ns)) Open();
    for (size_t i = 0; i < kMetrics.size(); ++i) {
      HotFile& file = files_[i / kLines.size()];
      const auto text = file.Read();
      const std::string_view line = kLines[i % kLines.size()];
      const auto total_us = text.ok() ? PressureTotalUs(*text, line) : std::nullopt;
      if (total_us) {
        states_.Set(out.t_ns, series_[i], model::SeriesCondition::kOk);
        out.values.push_back(
            {.series = series_[i], .value = static_cast<double>(*total_us) * 1e-6});
      } else if (text.ok()) {
        states_.Set(out.t_ns, series_[i], model::SeriesCondition::kNotSupported,
                    file.path() + ": no line \"" + std::string(line) + "\"");
      } else {
        states_.Set(out.t_ns, series_[i], ConditionOf(text.error().code),
                    text.error().Message() + " (the kernel needs CONFIG_PSI, perhaps psi=1)");
      }
    }
    return {};
  }

 private:
  void Open() {
    files_.clear();
    for (const std::string_view name : kFiles) {
      files_.emplace_back(job_.chain().levels.front().folder + std::string(name));
    }
  }

  const SourceContext context_;
  JobCgroup job_;
  SeriesStates states_;
  std::array<model::SeriesId, kMetrics.size()> series_{};
  std::vector<HotFile> files_;
};

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  // The v2 hierarchy alone has it, also on a hybrid host.
  EPM_ASSIGN(JobCgroup job, JobCgroup::Make(context, ""));
  return std::unique_ptr<Source>(std::make_unique<CgroupPressure>(context, std::move(job)));
}

}  // namespace

const SourceDef kCgroupPressure = {.name = "cgroup.pressure",
                                   .summary = "Time in which the job's tasks waited",
                                   .metrics = kMetrics,
                                   .tier = Tier::kTick,
                                   .Make = &Make};

}  // namespace epochmeter::collect
