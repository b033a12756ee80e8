// SPDX-License-Identifier: Apache-2.0
// CPU time of the host by mode, from the "cpu" line of /proc/stat, and how many CPUs there are and
// may be used.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "collect/cpu_limit.h"
#include "collect/host_sources.h"
#include "collect/proc_file.h"
#include "model/host_metrics.h"

namespace epochmeter::collect {

namespace {

constexpr size_t kModes = 8;
constexpr model::MetricDef kCpuCount = model::Metric(
    {"host.cpu.count", "", "cpu_count", "host_cpus", "{cpu}", model::MetricKind::kGauge,
     model::Scope::kHost, 1, "Logical CPUs that are online.", "/proc/stat"});
constexpr model::MetricDef kCpuLimit = model::Metric(
    {"host.cpu.limit", "", "cpu_limit_cores", "host_cpu_limit_cores", "{cpu}",
     model::MetricKind::kGauge, model::Scope::kHost, 0.01,
     "CPUs that the run may use: the least of affinity, cpuset and visible cgroup quotas.",
     "sched_getaffinity, cgroup"});

// The modes stand in the order of the "cpu" line.
constexpr std::array<model::MetricDef, kModes + 2> kMetrics = {model::host::kCpuUser,
                                                               model::host::kCpuNice,
                                                               model::host::kCpuSystem,
                                                               model::host::kCpuIdle,
                                                               model::host::kCpuIowait,
                                                               model::host::kCpuIrq,
                                                               model::host::kCpuSoftirq,
                                                               model::host::kCpuSteal,
                                                               kCpuCount,
                                                               kCpuLimit};

class HostCpu : public Source {
 public:
  explicit HostCpu(const SourceContext& context)
      : context_(context),
        host_(context.registry.AddEntity({.id = 0,
                                          .scope = model::Scope::kHost,
                                          .name = "host",
                                          .labels = {},
                                          .attributes = {}})),
        ticks_per_s_(static_cast<double>(::sysconf(_SC_CLK_TCK))),
        totals_(context.env.proc_root + "/stat", kTotalsBytes),
        all_(context.env.proc_root + "/stat") {
    for (size_t i = 0; i < kMetrics.size(); ++i) {
      const Tier tier = i < kModes ? Tier::kTick : Tier::kSlow;
      series_[i] =
          context.registry.AddSeries(host_, kMetrics[i], TierPeriodNs(tier, context.tick_ns));
    }
  }

  base::Result<> Sample(model::Samples& out) override {
    EPM_ASSIGN(std::string_view text, totals_.Read());
    std::string_view word;
    if (!NextWord(text, word) || word != "cpu") {
      return base::Error{.what = "cannot understand",
                         .where = totals_.path(),
                         .why = "the first line is not \"cpu\"",
                         .what_to_do = ""};
    }
    // Kernels before 2.6.11 have fewer modes; what is not there stays absent.
    for (size_t mode = 0; mode < kModes; ++mode) {
      const auto ticks = NextUint(text);
      if (!ticks) break;
      out.values.push_back({.series = series_[mode],
                            .value = static_cast<double>(Rising(mode, *ticks)) / ticks_per_s_});
    }
    if (out.t_ns >= next_slow_ns_) {
      next_slow_ns_ = out.t_ns + TierPeriodNs(Tier::kSlow, context_.tick_ns);
      SampleSlow(out);
    }
    return {};
  }

 private:
  // Long enough for the first line; the interrupt lines of a big machine are not copied.
  static constexpr size_t kTotalsBytes = 512;

  // Idle and iowait of a CPU may fall a little, by the kernel's own documentation. The last value
  // holds then; a larger fall passes as the reset that it is.
  uint64_t Rising(size_t mode, uint64_t ticks) {
    const auto hold_ticks = static_cast<uint64_t>(60 * ticks_per_s_);
    uint64_t& last = last_[mode];
    if (ticks >= last || last - ticks > hold_ticks) last = ticks;
    return last;
  }

  void SampleSlow(model::Samples& out) {
    int cpus = 0;
    if (auto text = all_.Read(); text.ok()) {
      std::string_view line;
      while (NextLine(*text, line) && line.substr(0, 3) == "cpu") {
        cpus += line.size() > 3 && line[3] != ' ' ? 1 : 0;
      }
    }
    if (cpus > 0) out.values.push_back({.series = series_[kModes], .value = double(cpus)});
    const auto limit = ReadCpuLimit(context_.env, context_.job.root_pid);
    if (limit) Tell(*limit, cpus, out);
  }

  // A training may pin its main thread later; that is no limit of the run, so the affinity counts
  // only as wide as it ever was.
  void Tell(CpuLimit limit, int cpus, model::Samples& out) {
    if (limit.reason == "affinity") {
      widest_cores_ = std::max(widest_cores_, limit.cores);
      limit.cores = widest_cores_;
    }
    out.values.push_back({.series = series_[kModes + 1], .value = limit.cores});
    context_.registry.AddEntity(
        {.id = 0,
         .scope = model::Scope::kHost,
         .name = "host",
         .labels = {},
         .attributes = {{"cpus", std::to_string(cpus)},
                        {"cpu_limit_cores", fmt::format("{:g}", limit.cores)},
                        {"cpu_limit_reason", limit.reason},
                        {"cpu_limit_ancestors_hidden", limit.ancestors_hidden ? "yes" : "no"}}});
  }

  const SourceContext context_;
  model::EntityId host_;
  double ticks_per_s_;
  HotFile totals_;
  HotFile all_;
  std::array<model::SeriesId, kMetrics.size()> series_{};
  std::array<uint64_t, kModes> last_{};
  int64_t next_slow_ns_ = 0;
  double widest_cores_ = 0;
};

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  HotFile file(context.env.proc_root + "/stat");
  EPM_TRY(file.Read());
  return std::unique_ptr<Source>(std::make_unique<HostCpu>(context));
}

}  // namespace

const SourceDef kHostCpu = {.name = "host.cpu",
                            .summary = "CPU time of the host by mode, CPU count and CPU limit",
                            .metrics = kMetrics,
                            .tier = Tier::kTick,
                            .vital = true,
                            .Make = &Make};

}  // namespace epochmeter::collect
