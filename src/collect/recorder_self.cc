// SPDX-License-Identifier: Apache-2.0
// What this process of ours costs: CPU time and memory. The schedule's own series stand beside it.
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "collect/host_sources.h"
#include "collect/proc_file.h"

namespace epochmeter::collect {

namespace {

constexpr std::array<model::MetricDef, 2> kMetrics = {
    model::Metric({"recorder.cpu", "", "recorder_cpu_s", "recorder_cpu_seconds_total", "s",
                   model::MetricKind::kCounter, model::Scope::kRun, 1e-6,
                   "CPU time of this process of epochmeter.", "getrusage"}),
    model::Metric({"recorder.memory", "", "recorder_rss_bytes", "recorder_resident_memory_bytes",
                   "By", model::MetricKind::kGauge, model::Scope::kRun, 1,
                   "Resident memory of this process of epochmeter.", "/proc/self/statm"}),
};

double Seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
}

class RecorderSelf : public Source {
 public:
  explicit RecorderSelf(const SourceContext& context)
      : states_(context.sink), statm_(context.env.proc_root + "/self/statm") {
    const model::EntityId self =
        context.registry.AddEntity({.id = 0,
                                    .scope = model::Scope::kRun,
                                    .name = context.process_label,
                                    .labels = {{"process", context.process_label}},
                                    .attributes = {}});
    const int64_t period_ns = TierPeriodNs(Tier::kTick, context.tick_ns);
    for (size_t i = 0; i < kMetrics.size(); ++i) {
      series_[i] = context.registry.AddSeries(self, kMetrics[i], period_ns);
    }
  }

  base::Result<> Sample(model::Samples& out) override {
    rusage usage{};
    if (::getrusage(RUSAGE_SELF, &usage) == 0) {
      out.values.push_back(
          {.series = series_[0], .value = Seconds(usage.ru_utime) + Seconds(usage.ru_stime)});
    }
    // The text reads: size RESIDENT shared text lib data dt, in pages.
    auto text = statm_.Read();
    std::optional<uint64_t> pages;
    if (text.ok() && NextUint(*text)) pages = NextUint(*text);
    if (pages) {
      states_.Set(out.t_ns, series_[1], model::SeriesCondition::kOk);
      out.values.push_back(
          {.series = series_[1],
           .value = static_cast<double>(*pages) * static_cast<double>(::sysconf(_SC_PAGESIZE))});
    } else {
      states_.Set(out.t_ns, series_[1],
                  text.ok() ? model::SeriesCondition::kError : ConditionOf(text.error().code),
                  text.ok() ? statm_.path() + ": not understood" : text.error().Message());
    }
    return {};
  }

 private:
  SeriesStates states_;
  HotFile statm_;
  std::array<model::SeriesId, kMetrics.size()> series_{};
};

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  return std::unique_ptr<Source>(std::make_unique<RecorderSelf>(context));
}

}  // namespace

const SourceDef kRecorderSelf = {.name = "recorder.self",
                                 .summary = "CPU time and memory of epochmeter's own process",
                                 .metrics = kMetrics,
                                 .tier = Tier::kTick,
                                 .vital = true,
                                 .Make = &Make};

}  // namespace epochmeter::collect
