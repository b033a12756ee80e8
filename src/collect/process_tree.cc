// SPDX-License-Identifier: Apache-2.0
// Sums over the run's processes, and for each rank (rank_totals.h). Costly parts are read seldom,
// each at a distance of at least a thousand times what its last reading took: open files, memory
// parts and threads each 10 s, PSS, for which the kernel walks page tables under the training's
// memory lock, each 30 s. New processes are looked for each tick while the run is young, later each
// 2 s; what one that lived for less used is in what its parent reaped.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "collect/cgroup.h"
#include "collect/host_sources.h"
#include "collect/proc_dir.h"
#include "collect/proc_file.h"
#include "collect/process_metrics.h"
#include "collect/rank_totals.h"
#include "collect/tree_counters.h"
#include "collect/tree_members.h"
#include "collect/tree_threads.h"

namespace epochmeter::collect {

namespace {

constexpr int64_t kYoungNs = 10 * base::kNsPerSecond;
constexpr int64_t kScanPeriodNs = 1900 * base::kNsPerMs;  // ticks may come early by some ms
constexpr int64_t kPssPeriodNs = 30 * base::kNsPerSecond;
// Walking the page tables of so much memory holds the training's memory lock for about 50 ms.
constexpr double kMostPssBytes = 16.0 * (1 << 30);
int64_t PeriodNs(size_t metric, int64_t tick_ns) {
  if (metric == kPss) return std::max(kPssPeriodNs, tick_ns);
  return TierPeriodNs(metric < kFirstSlow ? Tier::kTick : Tier::kSlow, tick_ns);
}

// A part that is read when `next_ns` has come.
struct SlowPart {
  int64_t next_ns = 0;
  void Plan(int64_t now_ns, int64_t cost_ns, int64_t period_ns) {
    next_ns = now_ns + std::max(period_ns, 1000 * cost_ns);
  }
};

class ProcessTree : public Source {
 public:
  ProcessTree(const SourceContext& context, TreeMembers members)
      : context_(context),
        members_(std::move(members)),
        ranks_(context),
        states_(context.sink),
        ticks_per_s_(static_cast<double>(::sysconf(_SC_CLK_TCK))),
        page_bytes_(static_cast<double>(::sysconf(_SC_PAGESIZE))) {
    tree_ = AddTree({});
    for (size_t i = 0; i < kMetricCount; ++i) {
      series_[i] = context.registry.AddSeries(tree_, kTreeMetrics[i], PeriodNs(i, context.tick_ns));
    }
    struct stat info {};
    // A folder of procfs has the size 0, and fd/ the number of its entries since Linux 6.2.
    fd_size_is_count_ = ::fstat(members_.proc_fd(), &info) == 0 && info.st_size == 0;
  }

  base::Result<> Sample(model::Samples& out) override {
    EPM_TRY(FindMembers(out.t_ns));
    SampleEachTick(out);
    SampleSlow(out, files_, kFds, &ProcessTree::SampleFds);
    SampleSlow(out, memory_, kAnon, &ProcessTree::SampleMemory);
    SampleSlow(out, threads_part_, kVoluntary, &ProcessTree::SampleThreads);
    SampleSlow(out, pss_, kPss, &ProcessTree::SamplePss);
    return {};
  }

 private:
  using Part = void (ProcessTree::*)(model::Samples&);

  base::Result<> FindMembers(int64_t t_ns) {
    if (!began_ns_) began_ns_ = t_ns;
    if (t_ns - *began_ns_ >= kYoungNs && t_ns < scan_.next_ns) {
      members_.Refresh();
      return {};
    }
    const int64_t begin_ns = context_.env.monotonic_ns();
    EPM_TRY(members_.Scan());
    scan_.Plan(t_ns, context_.env.monotonic_ns() - begin_ns, kScanPeriodNs);
    return {};
  }

  void Give(model::Samples& out, TreeMetric metric, double value) {
    states_.Set(out.t_ns, series_[metric], model::SeriesCondition::kOk);
    out.values.push_back({.series = series_[metric], .value = value});
  }

  void Withhold(const model::Samples& out, TreeMetric metric, int error, const std::string& where) {
    states_.Set(out.t_ns, series_[metric], ConditionOf(error),
                base::SystemError("cannot read", where, error).Message());
  }

  void SampleSlow(model::Samples& out, SlowPart& part, TreeMetric metric, Part sample) {
    if (out.t_ns < part.next_ns) return;
    const int64_t begin_ns = context_.env.monotonic_ns();
    (this->*sample)(out);
    part.Plan(out.t_ns, context_.env.monotonic_ns() - begin_ns, PeriodNs(metric, context_.tick_ns));
  }

  model::EntityId AddTree(model::Labels facts) {
    facts.insert(facts.begin(), {"root_pid", std::to_string(context_.job.root_pid)});
    return context_.registry.AddEntity({.id = 0,
                                        .scope = model::Scope::kProcess,
                                        .name = "tree",
                                        .labels = {},
                                        .attributes = std::move(facts)});
  }

  // Without I/O when that may not be read or the process has ended.
  ProcessCounts CountsOf(const ProcStat& stat) {
    ProcessCounts counts{.key = stat.key,
                         .parent = stat.parent,
                         .own_and_reaped = {},
                         .reaped_cpu_ticks = stat.reaped_cpu_ticks,
                         .reaped_major_faults = stat.reaped_major_faults,
                         .reaped_minor_faults = stat.reaped_minor_faults};
    counts.own_and_reaped[kCpuTicks] = stat.cpu_ticks + stat.reaped_cpu_ticks;
    counts.own_and_reaped[kMajorFaults] = stat.major_faults + stat.reaped_major_faults;
    counts.own_and_reaped[kMinorFaults] = stat.minor_faults + stat.reaped_minor_faults;
    const int error = members_.ReadIo(stat.key.pid, buffer_);
    const auto io = error == 0 ? ParseProcIo(buffer_) : std::nullopt;
    if (io) {
      io_[stat.key.pid] = *io;
      counts.own_and_reaped[kReadBytes] = io->read_bytes;
      counts.own_and_reaped[kWrittenBytes] = io->written_bytes;
      counts.own_and_reaped[kReadChars] = io->read_chars;
      counts.own_and_reaped[kWrittenChars] = io->written_chars;
    } else if (error != ESRCH && error != ENOENT) {
      io_error_ = error != 0 ? error : EINVAL;
    } else if (members_.ReadStat(stat.key.pid)) {
      io_error_ = error;  // the process is there, so the kernel has no I/O accounting
    }
    return counts;
  }

  void SampleEachTick(model::Samples& out) {
    io_error_ = 0;
    io_.clear();
    std::vector<ProcessCounts> counts;
    for (const ProcStat& stat : members_.members()) counts.push_back(CountsOf(stat));
    counters_.Update(counts, [this](const ProcKey& key) -> std::optional<ProcessCounts> {
      const auto stat = members_.ReadStat(key.pid);
      if (!stat || stat->key != key) return std::nullopt;
      return CountsOf(*stat);
    });
    const TreeCounts& total = counters_.totals();
    Give(out, kCpu, static_cast<double>(total[kCpuTicks]) / ticks_per_s_);
    Give(out, kMajor, static_cast<double>(total[kMajorFaults]));
    Give(out, kMinor, static_cast<double>(total[kMinorFaults]));
    GiveStates(out);
    GiveIo(out, total);
    ranks_.SampleTick(out, members_.proc_fd(), members_.members(), io_);
  }

  void GiveStates(model::Samples& out) {
    uint64_t rss_pages = 0, threads = 0, processes = 0;
    std::array<uint64_t, 5> states{};
    for (const ProcStat& stat : members_.members()) {
      const size_t state = kStateLetters.find(stat.state);
      if (state != std::string_view::npos) ++states[kStateOfLetter[state]];
      if (stat.ended()) continue;
      rss_pages += stat.rss_pages;
      threads += stat.threads;
      ++processes;
    }
    // After its last process has ended the tree has no memory, rather than 0 bytes of it.
    if (processes > 0) {
      Give(out, kRss, static_cast<double>(rss_pages) * page_bytes_);
      Give(out, kThreads, static_cast<double>(threads));
    }
    Give(out, kProcesses, static_cast<double>(processes));
    for (size_t i = 0; i < states.size(); ++i) {
      Give(out, static_cast<TreeMetric>(kRunning + i), static_cast<double>(states[i]));
    }
  }

  void GiveIo(model::Samples& out, const TreeCounts& total) {
    constexpr std::array<std::pair<TreeMetric, TreeCounter>, 4> kIo = {
        {{kRead, kReadBytes},
         {kWritten, kWrittenBytes},
         {kCharsRead, kReadChars},
         {kCharsWritten, kWrittenChars}}};
    for (const auto& [metric, counter] : kIo) {
      if (io_error_ != 0) {
        Withhold(out, metric, io_error_, "/proc/PID/io");
      } else {
        Give(out, metric, static_cast<double>(total[counter]));
      }
    }
  }

  // Open files of one process; -1 with errno when they can't be counted.
  int64_t CountFds(int32_t pid) {
    const std::string name = fmt::format("{}/fd", pid);
    struct stat info {};
    if (fd_size_is_count_ && ::fstatat(members_.proc_fd(), name.c_str(), &info, 0) == 0 &&
        info.st_size > 0 && ::faccessat(members_.proc_fd(), name.c_str(), R_OK, 0) == 0) {
      return info.st_size;
    }
    const Dir dir = OpenDirAt(members_.proc_fd(), name.c_str());
    if (!dir) return -1;
    int64_t count = 0;
    while (const dirent* entry = ::readdir(dir.get())) count += entry->d_name[0] != '.' ? 1 : 0;
    return count;
  }

  void SampleFds(model::Samples& out) {
    int64_t sum = 0;
    bool any = false;
    for (const ProcStat& stat : members_.members()) {
      if (stat.ended()) continue;
      any = true;
      const int64_t count = CountFds(stat.key.pid);
      if (count < 0 && errno != ENOENT && errno != ESRCH) {
        return Withhold(out, kFds, errno, "/proc/PID/fd");
      }
      sum += std::max<int64_t>(count, 0);
    }
    if (any) Give(out, kFds, static_cast<double>(sum));
  }

  void SampleThreads(model::Samples& out) {
    if (!threads_.Read(members_.proc_fd(), members_.members())) {
      const std::string why =
          fmt::format("the run has more than {} threads; reading each would cost too much",
                      TreeThreads::kMostThreads);
      for (const TreeMetric metric : {kVoluntary, kInvoluntary, kRunDelay}) {
        states_.Set(out.t_ns, series_[metric], model::SeriesCondition::kNotSupported, why);
      }
      return;
    }
    Give(out, kVoluntary, static_cast<double>(threads_.voluntary_switches()));
    Give(out, kInvoluntary, static_cast<double>(threads_.involuntary_switches()));
    ranks_.SampleWaits(out, threads_.waits());
    if (!threads_.waits().empty() || threads_.wait_ns() > 0) {
      Give(out, kRunDelay, base::SecondsFromNs(static_cast<int64_t>(threads_.wait_ns())));
    } else if (!members_.members().empty()) {
      Withhold(out, kRunDelay, ENOENT, "/proc/PID/task/TID/schedstat");
    }
  }

  // Of the root: where it may run and have its memory.
  void TellAffinity(std::string_view status) {
    model::Labels facts;
    for (const auto& [key, name] : {std::pair("Cpus_allowed_list:", "cpus_allowed"),
                                    std::pair("Mems_allowed_list:", "memory_nodes_allowed")}) {
      const auto value = TextOfKey(status, key);
      if (value) facts.emplace_back(name, std::string(*value));
    }
    if (!facts.empty()) AddTree(std::move(facts));
  }

  void SampleMemory(model::Samples& out) {
    std::map<int32_t, MemorySplit> splits;
    MemorySplit sum;
    int error = 0;
    for (const ProcStat& stat : members_.members()) {
      if (stat.ended()) continue;
      const std::string name = fmt::format("{}/status", stat.key.pid);
      const int failed = ReadAt(members_.proc_fd(), name.c_str(), buffer_);
      if (stat.key.pid == context_.job.root_pid && failed == 0) TellAffinity(buffer_);
      const auto split = failed == 0 ? ParseMemorySplit(buffer_) : std::nullopt;
      if (!split) {
        const auto now = members_.ReadStat(stat.key.pid);
        if (now && !now->ended()) error = failed != 0 ? failed : ENOENT;
        continue;
      }
      splits[stat.key.pid] = *split;
      sum.anon_bytes += split->anon_bytes;
      sum.file_bytes += split->file_bytes;
      sum.shmem_bytes += split->shmem_bytes;
      sum.swap_bytes += split->swap_bytes;
    }
    ranks_.SampleMemory(out, splits);
    const std::array<uint64_t, 4> parts = {sum.anon_bytes, sum.file_bytes, sum.shmem_bytes,
                                           sum.swap_bytes};
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto metric = static_cast<TreeMetric>(kAnon + i);
      if (error != 0) {
        Withhold(out, metric, error, "/proc/PID/status");
      } else if (!splits.empty()) {
        Give(out, metric, static_cast<double>(parts[i]));
      }
    }
  }

  void SamplePss(model::Samples& out) {
    uint64_t sum_kib = 0;
    bool any = false;
    for (const ProcStat& stat : members_.members()) {
      if (stat.ended()) continue;
      const double rss_bytes = static_cast<double>(stat.rss_pages) * page_bytes_;
      if (rss_bytes > kMostPssBytes) {
        return states_.Set(out.t_ns, series_[kPss], model::SeriesCondition::kNotSupported,
                           fmt::format("process {} is so large that reading it would hold up its "
                                       "memory",
                                       stat.key.pid));
      }
      const std::string name = fmt::format("{}/smaps_rollup", stat.key.pid);
      const int error = ReadAt(members_.proc_fd(), name.c_str(), buffer_);
      const auto kib = error == 0 ? NumberOfKey(buffer_, "Pss:") : std::nullopt;
      if (kib) {
        any = true;
        sum_kib += *kib;
        continue;
      }
      const auto now = members_.ReadStat(stat.key.pid);
      if (!now || now->ended()) continue;  // it ended meanwhile
      return Withhold(out, kPss, error != 0 ? error : EINVAL, "/proc/PID/smaps_rollup");
    }
    if (any) Give(out, kPss, static_cast<double>(sum_kib) * 1024);
  }

  const SourceContext context_;
  TreeMembers members_;
  TreeCounters counters_;
  TreeThreads threads_;
  RankTotals ranks_;
  SeriesStates states_;
  model::EntityId tree_ = 0;
  double ticks_per_s_;
  double page_bytes_;
  bool fd_size_is_count_ = false;
  std::array<model::SeriesId, kMetricCount> series_{};
  std::optional<int64_t> began_ns_;
  SlowPart scan_, files_, memory_, threads_part_, pss_;
  std::map<int32_t, ProcIo> io_;  // of this tick, by pid
  std::string buffer_;
  int io_error_ = 0;  // of this tick: why some process's I/O is not known
};

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  if (context.job.root_pid <= 0) {
    return base::Error{.what = "no process to follow",
                       .where = "",
                       .why = "the run has no root process",
                       .what_to_do = "use `epochmeter run` or `epochmeter attach PID`"};
  }
  EPM_ASSIGN(TreeMembers members, TreeMembers::Make(context.env.proc_root, context.job.root_pid,
                                                    context.job.excluded_pids));
  EPM_TRY(members.Scan());
  const auto chain = FindCgroup(context.env, context.job.root_pid, "memory");
  if (chain.ok() && chain->exact && !(chain->top_is_host && chain->levels.size() == 1)) {
    members.FollowCgroup(chain->levels.front().folder + "/cgroup.procs");
  }
  return std::unique_ptr<Source>(std::make_unique<ProcessTree>(context, std::move(members)));
}

std::span<const model::MetricDef> AllMetrics() {
  static const std::vector<model::MetricDef> kAll = [] {
    std::vector<model::MetricDef> all(kTreeMetrics.begin(), kTreeMetrics.end());
    const auto ranks = RankTotals::Metrics();
    all.insert(all.end(), ranks.begin(), ranks.end());
    return all;
  }();
  return kAll;
}

}  // namespace

const SourceDef kProcessTree = {.name = "process.tree",
                                .summary =
                                    "CPU, memory, I/O, threads and files of the run's "
                                    "processes together",
                                .metrics = AllMetrics(),
                                .tier = Tier::kTick,
                                .longest_ns = 10 * base::kNsPerSecond,
                                .worth = 2,
                                .Make = &Make};

}  // namespace epochmeter::collect
