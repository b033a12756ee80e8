// SPDX-License-Identifier: Apache-2.0
// Memory of the job's cgroup: what it holds, what limits it, and how often a limit was hit, there
// and in every visible cgroup above it. A process that the kernel killed for want of memory is an
// event too: kind process, name "oom_kill", fields cgroup, count, and where ("job" or "above").
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "collect/cgroup.h"
#include "collect/host_sources.h"
#include "collect/proc_file.h"
#include "collect/proc_pid.h"

namespace epochmeter::collect {

namespace {

consteval model::MetricDef Memory(std::string_view name, std::string_view label,
                                  std::string_view field, std::string_view prometheus,
                                  std::string_view help, std::string_view source,
                                  model::MetricKind kind = model::MetricKind::kGauge) {
  return model::Metric(
      {name, label, field, prometheus, "By", kind, model::Scope::kCgroup, 1, help, source});
}
consteval model::MetricDef Part(std::string_view label, std::string_view field,
                                std::string_view help) {
  return Memory("cgroup.memory.part", label, field, "cgroup_memory_part_bytes", help,
                "memory.stat");
}
consteval model::MetricDef Events(std::string_view label, std::string_view field,
                                  std::string_view help) {
  return model::Metric({"cgroup.memory.events", label, field, "cgroup_memory_events_total",
                        "{event}", model::MetricKind::kCounter, model::Scope::kCgroup, 1, help,
                        "memory.events"});
}

enum Metric : size_t {
  kCurrent,
  kWorkingSet,
  kAnon,
  kFile,
  kShmem,
  kKernel,
  kInactiveFile,
  kActiveFile,
  kSwap,
  kLow,
  kHigh,
  kMax,
  kOom,
  kOomKill,
  kPeak,
  kLimit,
  kHighLimit,
  kSwapLimit,
  kMetricCount
};
constexpr std::array<model::MetricDef, kMetricCount> kMetrics = {
    Memory("cgroup.memory.current", "", "memory_current_bytes", "cgroup_memory_current_bytes",
           "Memory charged to the cgroup, page cache included, which gives way under pressure.",
           "memory.current, memory.usage_in_bytes"),
    Memory("cgroup.memory.working_set", "", "memory_working_set_bytes",
           "cgroup_memory_working_set_bytes",
           "Charged memory without inactive page cache; active cache in it can give way too.",
           "memory.current - inactive_file"),
    Part("part=anon", "memory_anon_bytes", "Memory of programs that no file stands behind."),
    Part("part=file", "memory_file_bytes", "Page cache, shared memory included."),
    Part("part=shmem", "memory_shmem_bytes", "Shared memory and tmpfs, such as /dev/shm."),
    Part("part=kernel", "memory_kernel_bytes", "Memory of the kernel for the cgroup."),
    Part("part=inactive_file", "memory_inactive_file_bytes", "Page cache not used lately."),
    Part("part=active_file", "memory_active_file_bytes", "Page cache in use."),
    Memory("cgroup.memory.swap", "", "memory_swap_bytes", "cgroup_memory_swap_bytes",
           "Memory of the cgroup that was swapped out.", "memory.swap.current, memory.stat"),
    Events("event=low", "memory_low_events", "Times that protected memory was reclaimed anyway."),
    Events("event=high", "memory_high_events", "Times that a process was held at memory.high."),
    Events("event=max", "memory_max_events", "Times that the limit was about to be passed."),
    Events("event=oom", "memory_oom_events", "Times that an allocation failed at the limit."),
    Events("event=oom_kill", "memory_oom_kills",
           "Processes of this cgroup and those below it that were killed for want of memory."),
    Memory("cgroup.memory.peak", "", "memory_peak_bytes", "cgroup_memory_peak_bytes",
           "Highest charge since the cgroup was made, page cache included.",
           "memory.peak, memory.max_usage_in_bytes", model::MetricKind::kPeak),
    Memory("cgroup.memory.limit", "", "memory_limit_bytes", "cgroup_memory_limit_bytes",
           "The tightest memory limit of the cgroup and those above it; absent without one.",
           "memory.max, memory.limit_in_bytes"),
    Memory("cgroup.memory.high_limit", "", "memory_high_limit_bytes",
           "cgroup_memory_high_limit_bytes",
           "The tightest memory.high, beyond which allocations are slowed; absent without one.",
           "memory.high"),
    Memory("cgroup.memory.swap_limit", "", "memory_swap_limit_bytes",
           "cgroup_memory_swap_limit_bytes",
           "The tightest limit of swap (v1: of memory and swap together); absent without one.",
           "memory.swap.max, memory.memsw.limit_in_bytes"),
};
constexpr std::array<Metric, 5> kEvents = {kLow, kHigh, kMax, kOom, kOomKill};
constexpr std::array<Metric, 4> kEventsAbove = {kHigh, kMax, kOom, kOomKill};

// Where a value stands, in each version; empty where that has none.
struct Key {
  Metric metric;
  std::string_view v2, v1;
};
constexpr std::array<Key, 6> kStatKeys = {
    {{kAnon, "anon ", "total_rss "},
     {kFile, "file ", "total_cache "},
     {kShmem, "shmem ", "total_shmem "},
     {kKernel, "kernel ", ""},
     {kInactiveFile, "inactive_file ", "total_inactive_file "},
     {kActiveFile, "active_file ", "total_active_file "}}};
constexpr std::array<std::string_view, kEvents.size()> kEventKeys = {"low ", "high ", "max ",
                                                                     "oom ", "oom_kill "};

// The files of one cgroup.
struct Files {
  Files(const CgroupChain& chain, const CgroupLevel& level)
      : v2(chain.v2),
        name(level.name),
        current(level.folder + (v2 ? "/memory.current" : "/memory.usage_in_bytes")),
        stat(level.folder + "/memory.stat"),
        events(level.folder + (v2 ? "/memory.events" : "/memory.oom_control")),
        failcnt(level.folder + "/memory.failcnt"),
        swap(level.folder + (v2 ? "/memory.swap.current" : "/memory.stat")),
        peak(level.folder + (v2 ? "/memory.peak" : "/memory.max_usage_in_bytes")) {}
  bool v2;
  std::string name;
  HotFile current, stat, events, failcnt, swap, peak;
  model::EntityId entity = 0;
  std::array<model::SeriesId, kMetricCount> series{};
  std::optional<uint64_t> oom_kills;  // as last read
};

class CgroupMemory : public Source {
 public:
  CgroupMemory(const SourceContext& context, JobCgroup job)
      : context_(context), job_(std::move(job)), states_(context.sink) {
    Open();
  }

  base::Result<> Sample(model::Samples& out) override {
    if (job_.Refresh(out.t_ns)) Open();
    // Before what may fail: the job's cgroup goes with the job, those above it tell of its kills.
    for (size_t i = 0; i < levels_.size(); ++i) SampleEvents(out, levels_[i], i > 0);
    TellKills(out.t_ns);
    EPM_TRY(SampleJob(out));
    for (size_t i = 1; i < levels_.size(); ++i) {
      if (const auto current = ReadNumber(levels_[i].current)) {
        Give(out, levels_[i], kCurrent, *current);
      }
    }
    if (out.t_ns >= next_slow_ns_) {
      next_slow_ns_ = out.t_ns + TierPeriodNs(Tier::kSlow, context_.tick_ns);
      SampleSlow(out);
    }
    return {};
  }

 private:
  void Open() {
    levels_.clear();
    next_slow_ns_ = 0;
    const CgroupChain& chain = job_.chain();
    for (size_t i = 0; i < chain.levels.size(); ++i) {
      // The host's root counts everybody.
      if (i > 0 && i + 1 == chain.levels.size() && chain.top_is_host) break;
      Files files(chain, chain.levels[i]);
      files.entity = i == 0 ? AddJobCgroup(context_) : AddCgroupAbove(context_, chain.levels[i]);
      Define(files, i > 0);
      levels_.push_back(std::move(files));
    }
  }

  void Define(Files& files, bool above) {
    for (size_t i = 0; i < kMetricCount; ++i) {
      const bool wanted =
          std::find(kEventsAbove.begin(), kEventsAbove.end(), i) != kEventsAbove.end() ||
          i == kCurrent;
      if (above && !wanted) continue;
      const Tier tier = i < kPeak ? Tier::kTick : Tier::kSlow;
      files.series[i] = context_.registry.AddSeries(files.entity, kMetrics[i],
                                                    TierPeriodNs(tier, context_.tick_ns));
    }
  }

  void Give(model::Samples& out, const Files& files, Metric metric, uint64_t value) {
    states_.Set(out.t_ns, files.series[metric], model::SeriesCondition::kOk);
    out.values.push_back({.series = files.series[metric], .value = static_cast<double>(value)});
  }
  void Withhold(const model::Samples& out, const Files& files, Metric metric, std::string why) {
    states_.Set(out.t_ns, files.series[metric], model::SeriesCondition::kNotSupported, why);
  }

  static std::optional<uint64_t> ReadNumber(HotFile& file) {
    auto text = file.Read();
    return text.ok() ? NextUint(*text) : std::nullopt;
  }

  base::Result<> SampleJob(model::Samples& out) {
    Files& job = levels_.front();
    EPM_ASSIGN(std::string_view current_text, job.current.Read());
    const auto current = NextUint(current_text);
    if (current) Give(out, job, kCurrent, *current);
    EPM_ASSIGN(const std::string_view stat, job.stat.Read());
    for (const Key& key : kStatKeys) {
      const std::string_view name = job.v2 ? key.v2 : key.v1;
      const auto value = name.empty() ? std::nullopt : NumberOfKey(stat, name);
      if (!value) {
        Withhold(out, job, key.metric, "memory.stat of this kernel has no such line");
        continue;
      }
      Give(out, job, key.metric, *value);
      // The two files are read one after the other: a small difference may be negative.
      if (key.metric == kInactiveFile && current) {
        Give(out, job, kWorkingSet, *current > *value ? *current - *value : 0);
      }
    }
    SampleSwap(out, job, stat);
    return {};
  }

  // v1 has swap in memory.stat when the kernel counts it.
  void SampleSwap(model::Samples& out, Files& job, std::string_view stat) {
    const auto swap = job.v2 ? ReadNumber(job.swap) : NumberOfKey(stat, "total_swap ");
    if (swap) return Give(out, job, kSwap, *swap);
    Withhold(out, job, kSwap, "the kernel does not count swap by cgroup");
  }

  // v1 counts only failed charges (as "max") and, since Linux 4.13, kills.
  void SampleEvents(model::Samples& out, Files& files, bool above) {
    const auto text = files.events.Read();
    for (size_t i = 0; i < kEvents.size(); ++i) {
      const Metric metric = kEvents[i];
      if (above && metric == kLow) continue;
      const bool by_failcnt = !files.v2 && metric == kMax;
      const auto count = by_failcnt  ? ReadNumber(files.failcnt)
                         : text.ok() ? NumberOfKey(*text, kEventKeys[i])
                                     : std::nullopt;
      if (!count) {
        Withhold(out, files, metric,
                 files.v2 ? "memory.events of this kernel has no such line"
                          : "cgroup v1 does not count this");
      } else {
        Give(out, files, metric, *count);
      }
      if (metric == kOomKill) NoteKills(files, count);
    }
  }

  static uint64_t Above(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

  void NoteKills(Files& files, std::optional<uint64_t> count) {
    new_kills_.push_back(count && files.oom_kills ? Above(*count, *files.oom_kills) : 0);
    if (count) files.oom_kills = count;
  }

  // In v2 a kill counts in every cgroup above too, so a level tells only of what the level below
  // does not explain.
  void TellKills(int64_t t_ns) {
    uint64_t explained = 0;
    for (size_t i = 0; i < levels_.size(); ++i) {
      const Files& files = levels_[i];
      const uint64_t kills = Above(new_kills_[i], files.v2 ? explained : 0);
      explained = std::max(explained, new_kills_[i]);
      if (kills == 0) continue;
      context_.sink.Write(
          model::Event{.t_ns = t_ns,
                       .kind = model::EventKind::kProcess,
                       .rank = {},
                       .epoch = {},
                       .step = {},
                       .name = "oom_kill",
                       .fields = {{.key = "cgroup", .value = files.name},
                                  {.key = "where", .value = std::string(i == 0 ? "job" : "above")},
                                  {.key = "count", .value = static_cast<int64_t>(kills)}}});
    }
    new_kills_.clear();
  }

  void SampleSlow(model::Samples& out) {
    Files& job = levels_.front();
    if (const auto peak = ReadNumber(job.peak)) {
      Give(out, job, kPeak, *peak);
    } else {
      Withhold(out, job, kPeak, job.peak.path() + ": this kernel does not have it");
    }
    const bool v2 = job.v2;
    GiveLimit(out, kLimit, v2 ? "memory.max" : "memory.limit_in_bytes");
    GiveLimit(out, kSwapLimit, v2 ? "memory.swap.max" : "memory.memsw.limit_in_bytes");
    if (v2) GiveLimit(out, kHighLimit, "memory.high");
  }

  void GiveLimit(model::Samples& out, Metric metric, const char* file) {
    const auto limit = FindTightest(job_.chain(), [file](const CgroupLevel& level) {
      return ReadCgroupLimit(level.folder, file);
    });
    if (limit)
      out.values.push_back({.series = levels_.front().series[metric], .value = limit->value});
  }

  const SourceContext context_;
  JobCgroup job_;
  SeriesStates states_;
  std::vector<Files> levels_;  // the job's cgroup and those above it
  std::vector<uint64_t> new_kills_;
  int64_t next_slow_ns_ = 0;
};

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  EPM_ASSIGN(JobCgroup job, JobCgroup::Make(context, "memory"));
  const CgroupLevel& level = job.chain().levels.front();
  HotFile file(level.folder + (job.chain().v2 ? "/memory.current" : "/memory.usage_in_bytes"));
  const auto text = file.Read();
  if (!text.ok()) {
    return base::Error{.what = "the job's cgroup does not count memory",
                       .where = file.path(),
                       .why = text.error().why,
                       .what_to_do =
                           "switch the memory controller on for it, or run in a "
                           "container or a batch system's job, which do"};
  }
  return std::unique_ptr<Source>(std::make_unique<CgroupMemory>(context, std::move(job)));
}

}  // namespace

const SourceDef kCgroupMemory = {.name = "cgroup.memory",
                                 .summary = "Memory, limits and kills of the job's cgroup",
                                 .metrics = kMetrics,
                                 .tier = Tier::kTick,
                                 .vital = true,
                                 .Make = &Make};

}  // namespace epochmeter::collect
