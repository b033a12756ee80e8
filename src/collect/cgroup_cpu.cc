// SPDX-License-Identifier: Apache-2.0
// CPU time of the job's cgroup, and how long quotas held it back: its own and those above it.
#include <array>
#include <memory>

#include "collect/cgroup.h"
#include "collect/host_sources.h"
#include "collect/proc_file.h"
#include "collect/proc_pid.h"

namespace epochmeter::collect {

namespace {

consteval model::MetricDef Counter(std::string_view name, std::string_view field,
                                   std::string_view prometheus, std::string_view unit,
                                   double resolution, std::string_view help,
                                   std::string_view source) {
  return model::Metric({name, "", field, prometheus, unit, model::MetricKind::kCounter,
                        model::Scope::kCgroup, resolution, help, source});
}
enum Metric : size_t { kUsage, kThrottled, kThrottledPeriods, kPeriods, kQuota, kMetricCount };
constexpr std::array<model::MetricDef, kMetricCount> kMetrics = {
    Counter("cgroup.cpu.usage", "cpu_usage_s", "cgroup_cpu_usage_seconds_total", "s", 1e-6,
            "CPU time of all processes of the job's cgroup, also of those that ended.",
            "cpu.stat, cpuacct.usage"),
    Counter("cgroup.cpu.throttled", "cpu_throttled_s", "cgroup_cpu_throttled_seconds_total", "s",
            1e-6,
            "Time that CPUs were held back by a quota, added over CPUs and over the cgroup and "
            "those above it.",
            "cpu.stat"),
    Counter("cgroup.cpu.throttled_periods", "cpu_throttled_periods",
            "cgroup_cpu_throttled_periods_total", "{period}", 1,
            "Quota periods that ended with the quota used up, over the cgroup and those above it.",
            "cpu.stat"),
    Counter("cgroup.cpu.periods", "cpu_periods", "cgroup_cpu_periods_total", "{period}", 1,
            "Quota periods in which something ran, over the cgroup and those above it.",
            "cpu.stat"),
    model::Metric({"cgroup.cpu.quota", "", "cpu_quota_cores", "cgroup_cpu_quota_cores", "{cpu}",
                   model::MetricKind::kGauge, model::Scope::kCgroup, 0.01,
                   "CPUs that the tightest quota of the cgroup and those above it grants; absent "
                   "without one.",
                   "cpu.max, cpu.cfs_quota_us"}),
};

class CgroupCpu : public Source {
 public:
  CgroupCpu(const SourceContext& context, JobCgroup cpu, JobCgroup usage)
      : context_(context),
        cpu_(std::move(cpu)),
        usage_(std::move(usage)),
        states_(context.sink),
        entity_(AddJobCgroup(context)) {
    for (size_t i = 0; i < kMetricCount; ++i) {
      const Tier tier = i == kQuota ? Tier::kSlow : Tier::kTick;
      series_[i] =
          context.registry.AddSeries(entity_, kMetrics[i], TierPeriodNs(tier, context.tick_ns));
    }
    Open();
  }

  base::Result<> Sample(model::Samples& out) override {
    const bool cpu_moved = cpu_.Refresh(out.t_ns);
    if (usage_.Refresh(out.t_ns) || cpu_moved) {
      AddJobCgroup(context_);
      Open();
    }
    EPM_TRY(SampleUsage(out));
    SampleThrottling(out);
    if (out.t_ns < next_slow_ns_) return {};
    next_slow_ns_ = out.t_ns + TierPeriodNs(Tier::kSlow, context_.tick_ns);
    const auto quota = FindTightest(cpu_.chain(), [this](const CgroupLevel& level) {
      return ReadCpuQuota(cpu_.chain(), level);
    });
    if (quota) out.values.push_back({.series = series_[kQuota], .value = quota->value});
    return {};
  }

 private:
  void Open() {
    files_.clear();
    const CgroupChain& chain = cpu_.chain();
    for (const CgroupLevel& level : chain.levels) files_.emplace_back(level.folder + "/cpu.stat");
    const CgroupChain& usage = usage_.chain();
    usage_file_.emplace(usage.levels.front().folder + (usage.v2 ? "/cpu.stat" : "/cpuacct.usage"));
  }

  // v2 in us behind a key, v1 in ns alone.
  base::Result<> SampleUsage(model::Samples& out) {
    EPM_ASSIGN(std::string_view text, usage_file_->Read());
    const bool v2 = usage_.chain().v2;
    const auto usage = v2 ? NumberOfKey(text, "usage_usec ") : NextUint(text);
    if (!usage) {
      return base::Error{.what = "cannot understand",
                         .where = usage_file_->path(),
                         .why = "it has no CPU time",
                         .what_to_do = ""};
    }
    Give(out, kUsage, static_cast<double>(*usage) * (v2 ? 1e-6 : 1e-9));
    return {};
  }

  // Each level counts only what its own quota did.
  void SampleThrottling(model::Samples& out) {
    const bool v2 = cpu_.chain().v2;
    double throttled_s = 0, throttled_periods = 0, periods = 0;
    bool any = false;
    for (HotFile& file : files_) {
      const auto text = file.Read();
      if (!text.ok()) continue;
      const auto time = NumberOfKey(*text, v2 ? "throttled_usec " : "throttled_time ");
      const auto held = NumberOfKey(*text, "nr_throttled ");
      const auto all = NumberOfKey(*text, "nr_periods ");
      if (!time || !held || !all) continue;
      any = true;
      throttled_s += static_cast<double>(*time) * (v2 ? 1e-6 : 1e-9);
      throttled_periods += static_cast<double>(*held);
      periods += static_cast<double>(*all);
    }
    if (!any) {
      for (const Metric metric : {kThrottled, kThrottledPeriods, kPeriods}) {
        states_.Set(out.t_ns, series_[metric], model::SeriesCondition::kNotSupported,
                    files_.front().path() +
                        ": quotas are not counted here (the cpu controller is "
                        "off)");
      }
      return;
    }
    Give(out, kThrottled, throttled_s);
    Give(out, kThrottledPeriods, throttled_periods);
    Give(out, kPeriods, periods);
  }

  void Give(model::Samples& out, Metric metric, double value) {
    states_.Set(out.t_ns, series_[metric], model::SeriesCondition::kOk);
    out.values.push_back({.series = series_[metric], .value = value});
  }

  const SourceContext context_;
  JobCgroup cpu_, usage_;  // v1 may mount cpu and cpuacct apart
  SeriesStates states_;
  model::EntityId entity_;
  std::array<model::SeriesId, kMetricCount> series_{};
  std::vector<HotFile> files_;  // cpu.stat of the job's cgroup and those above it
  std::optional<HotFile> usage_file_;
  int64_t next_slow_ns_ = 0;
};

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  EPM_ASSIGN(JobCgroup usage, JobCgroup::Make(context, "cpuacct"));
  auto cpu = JobCgroup::Make(context, "cpu");
  // Where v1 has the job in the root of "cpu" alone, no quota holds for it.
  JobCgroup of_quota = cpu.ok() ? std::move(cpu).value() : usage;
  return std::unique_ptr<Source>(
      std::make_unique<CgroupCpu>(context, std::move(of_quota), std::move(usage)));
}

}  // namespace

const SourceDef kCgroupCpu = {.name = "cgroup.cpu",
                              .summary = "CPU time and throttling of the job's cgroup",
                              .metrics = kMetrics,
                              .tier = Tier::kTick,
                              .vital = true,
                              .Make = &Make};

}  // namespace epochmeter::collect
