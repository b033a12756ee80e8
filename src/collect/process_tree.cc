// SPDX-License-Identifier: Apache-2.0
// Sums over the run's processes. Costly parts are read seldom, each at a distance of at least a
// thousand times what its last reading took: open files and context switches each 10 s, PSS, for
// which the kernel walks page tables under the training's memory lock, each 30 s.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>

#include "collect/host_sources.h"
#include "collect/proc_file.h"
#include "collect/tree_counters.h"
#include "collect/tree_members.h"
#include "model/host_metrics.h"

namespace epochmeter::collect {

namespace {

namespace host = model::host;

enum Metric : size_t {
  kCpu,
  kRss,
  kThreads,
  kProcesses,
  kMajor,
  kRead,
  kWritten,
  kFds,
  kVoluntary,
  kInvoluntary,
  kPss,
  kMetricCount
};
constexpr std::array<model::MetricDef, kMetricCount> kMetrics = {
    host::kTreeCpu,
    host::kTreeRss,
    host::kTreeThreads,
    host::kTreeProcesses,
    host::kTreeMajorFaults,
    host::kTreeRead,
    host::kTreeWritten,
    host::TreeGauge("process.fds", "open_fds", "process_tree_open_fds", "{file}",
                    "Open file descriptors of the run's processes.", "/proc/PID/fd"),
    host::TreeCounter("process.context_switches", "kind=voluntary", "voluntary_context_switches",
                      "process_tree_context_switches_total", "{switch}", 1,
                      "Times that a thread gave up its CPU to wait; threads that lived less than "
                      "the sampling period are not seen.",
                      "/proc/PID/task/TID/status"),
    host::TreeCounter("process.context_switches", "kind=involuntary",
                      "involuntary_context_switches", "process_tree_context_switches_total",
                      "{switch}", 1,
                      "Times that a thread had its CPU taken away; threads that lived less than "
                      "the sampling period are not seen.",
                      "/proc/PID/task/TID/status"),
    host::TreeGauge("process.pss", "pss_bytes", "process_tree_proportional_memory_bytes", "By",
                    "Resident memory with each shared page split among the processes that map it.",
                    "/proc/PID/smaps_rollup"),
};

constexpr int64_t kPssPeriodNs = 30 * base::kNsPerSecond;
constexpr size_t kMostThreads = 4096;

int64_t PeriodNs(size_t metric, int64_t tick_ns) {
  if (metric == kPss) return std::max(kPssPeriodNs, tick_ns);
  return TierPeriodNs(metric < kFds ? Tier::kTick : Tier::kSlow, tick_ns);
}

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};
using Dir = std::unique_ptr<DIR, CloseDir>;

Dir OpenDirAt(int dir_fd, const char* name) {
  const int fd = ::openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  Dir dir(::fdopendir(fd));
  if (!dir) ::close(fd);
  return dir;
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
        states_(context.sink),
        ticks_per_s_(static_cast<double>(::sysconf(_SC_CLK_TCK))),
        page_bytes_(static_cast<double>(::sysconf(_SC_PAGESIZE))) {
    const model::EntityId tree = context.registry.AddEntity(
        {.id = 0,
         .scope = model::Scope::kProcess,
         .name = "tree",
         .labels = {},
         .attributes = {{"root_pid", std::to_string(context.job.root_pid)}}});
    for (size_t i = 0; i < kMetricCount; ++i) {
      series_[i] = context.registry.AddSeries(tree, kMetrics[i], PeriodNs(i, context.tick_ns));
    }
    struct stat info {};
    // A folder of procfs has the size 0, and fd/ the number of its entries since Linux 6.2.
    fd_size_is_count_ = ::fstat(members_.proc_fd(), &info) == 0 && info.st_size == 0;
  }

  base::Result<> Sample(model::Samples& out) override {
    EPM_TRY(members_.Scan());
    SampleEachTick(out);
    SampleSlow(out, files_, kFds, &ProcessTree::SampleFds);
    SampleSlow(out, switches_, kVoluntary, &ProcessTree::SampleSwitches);
    SampleSlow(out, pss_, kPss, &ProcessTree::SamplePss);
    return {};
  }

 private:
  using Part = void (ProcessTree::*)(model::Samples&);

  void Give(model::Samples& out, Metric metric, double value) {
    states_.Set(out.t_ns, series_[metric], model::SeriesCondition::kOk);
    out.values.push_back({.series = series_[metric], .value = value});
  }

  void Withhold(const model::Samples& out, Metric metric, int error, const std::string& where) {
    states_.Set(out.t_ns, series_[metric], ConditionOf(error),
                base::SystemError("cannot read", where, error).Message());
  }

  void SampleSlow(model::Samples& out, SlowPart& part, Metric metric, Part sample) {
    if (out.t_ns < part.next_ns) return;
    const int64_t begin_ns = context_.env.monotonic_ns();
    (this->*sample)(out);
    part.Plan(out.t_ns, context_.env.monotonic_ns() - begin_ns, PeriodNs(metric, context_.tick_ns));
  }

  // Nothing when the process has ended; without I/O when that may not be read.
  ProcessCounts CountsOf(const ProcStat& stat) {
    ProcessCounts counts{.key = stat.key,
                         .parent = stat.parent,
                         .own_and_reaped = {stat.cpu_ticks + stat.reaped_cpu_ticks,
                                            stat.major_faults + stat.reaped_major_faults, 0, 0},
                         .reaped_cpu_ticks = stat.reaped_cpu_ticks,
                         .reaped_major_faults = stat.reaped_major_faults};
    const std::string name = fmt::format("{}/io", stat.key.pid);
    const int error = ReadAt(members_.proc_fd(), name.c_str(), buffer_);
    const auto io = error == 0 ? ParseProcIo(buffer_) : std::nullopt;
    if (io) {
      counts.own_and_reaped[kReadBytes] = io->read_bytes;
      counts.own_and_reaped[kWrittenBytes] = io->written_bytes;
    } else if (error != ESRCH && error != ENOENT) {
      io_error_ = error != 0 ? error : EINVAL;
    } else if (members_.ReadStat(stat.key.pid)) {
      io_error_ = error;  // the process is there, so the kernel has no I/O accounting
    }
    return counts;
  }

  void SampleEachTick(model::Samples& out) {
    io_error_ = 0;
    std::vector<ProcessCounts> counts;
    uint64_t rss_pages = 0, threads = 0, processes = 0;
    for (const ProcStat& stat : members_.members()) {
      counts.push_back(CountsOf(stat));
      if (stat.ended()) continue;
      rss_pages += stat.rss_pages;
      threads += stat.threads;
      ++processes;
    }
    counters_.Update(counts, [this](const ProcKey& key) -> std::optional<ProcessCounts> {
      const auto stat = members_.ReadStat(key.pid);
      if (!stat || stat->key != key) return std::nullopt;
      return CountsOf(*stat);
    });
    const TreeCounts& total = counters_.totals();
    Give(out, kCpu, static_cast<double>(total[kCpuTicks]) / ticks_per_s_);
    // After its last process has ended the tree has no memory, rather than 0 bytes of it.
    if (processes > 0) {
      Give(out, kRss, static_cast<double>(rss_pages) * page_bytes_);
      Give(out, kThreads, static_cast<double>(threads));
    }
    Give(out, kProcesses, static_cast<double>(processes));
    Give(out, kMajor, static_cast<double>(total[kMajorFaults]));
    if (io_error_ != 0) {
      Withhold(out, kRead, io_error_, "/proc/PID/io");
      Withhold(out, kWritten, io_error_, "/proc/PID/io");
      return;
    }
    Give(out, kRead, static_cast<double>(total[kReadBytes]));
    Give(out, kWritten, static_cast<double>(total[kWrittenBytes]));
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

  void SampleSwitches(model::Samples& out) {
    size_t threads = 0;
    for (const ProcStat& stat : members_.members()) threads += stat.threads;
    if (threads > kMostThreads) {
      for (const Metric metric : {kVoluntary, kInvoluntary}) {
        states_.Set(out.t_ns, series_[metric], model::SeriesCondition::kNotSupported,
                    fmt::format("the run has more than {} threads; reading each would cost too "
                                "much",
                                kMostThreads));
      }
      return;
    }
    std::map<ProcKey, uint64_t> voluntary, involuntary;
    for (const ProcStat& stat : members_.members()) ReadSwitches(stat, voluntary, involuntary);
    voluntary_.Update(std::move(voluntary));
    involuntary_.Update(std::move(involuntary));
    Give(out, kVoluntary, static_cast<double>(voluntary_.total()));
    Give(out, kInvoluntary, static_cast<double>(involuntary_.total()));
  }

  // A thread id with the start of its process is unique enough for the few seconds between scans.
  void ReadSwitches(const ProcStat& stat, std::map<ProcKey, uint64_t>& voluntary,
                    std::map<ProcKey, uint64_t>& involuntary) {
    const std::string folder = fmt::format("{}/task", stat.key.pid);
    const Dir dir = OpenDirAt(members_.proc_fd(), folder.c_str());
    if (!dir) return;
    while (const dirent* entry = ::readdir(dir.get())) {
      ProcKey key{.pid = 0, .start_ticks = stat.key.start_ticks};
      const std::string_view name = entry->d_name;
      if (std::from_chars(name.data(), name.data() + name.size(), key.pid).ec != std::errc()) {
        continue;
      }
      const std::string path = fmt::format("{}/{}/status", folder, name);
      if (ReadAt(members_.proc_fd(), path.c_str(), buffer_) != 0) continue;
      const auto waits = NumberOfKey(buffer_, "voluntary_ctxt_switches:");
      const auto taken = NumberOfKey(buffer_, "nonvoluntary_ctxt_switches:");
      if (waits) voluntary[key] = *waits;
      if (taken) involuntary[key] = *taken;
    }
  }

  void SamplePss(model::Samples& out) {
    uint64_t sum_kib = 0;
    bool any = false;
    for (const ProcStat& stat : members_.members()) {
      if (stat.ended()) continue;
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
  DepartingSum voluntary_, involuntary_;
  SeriesStates states_;
  double ticks_per_s_;
  double page_bytes_;
  bool fd_size_is_count_ = false;
  std::array<model::SeriesId, kMetricCount> series_{};
  SlowPart files_, switches_, pss_;
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
  return std::unique_ptr<Source>(std::make_unique<ProcessTree>(context, std::move(members)));
}

}  // namespace

const SourceDef kProcessTree = {.name = "process.tree",
                                .summary =
                                    "CPU, memory, I/O, threads and files of the run's "
                                    "processes together",
                                .metrics = kMetrics,
                                .tier = Tier::kTick,
                                .Make = &Make};

}  // namespace epochmeter::collect
