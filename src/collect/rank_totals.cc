// SPDX-License-Identifier: Apache-2.0
#include "collect/rank_totals.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "model/run.h"

namespace epochmeter::collect {

namespace {

enum Metric : size_t {
  kMainCpu,
  kMainRss,
  kWorkers,
  kWorkersBlocked,
  kWorkerCpu,
  kWorkerRss,
  kWorkerMajor,
  kWorkerRead,
  kWorkerAnon,
  kMainDelay,
  kWorkerDelay,
  kMetricCount
};
enum Sum : size_t { kMainCpuSum, kWorkerCpuSum, kMajorSum, kReadSum, kMainWaitSum, kWorkerWaitSum };

consteval model::MetricDef Gauge(std::string_view name, std::string_view field,
                                 std::string_view prometheus, std::string_view unit,
                                 std::string_view help, std::string_view source) {
  return model::Metric({name, "", field, prometheus, unit, model::MetricKind::kGauge,
                        model::Scope::kProcess, 1, help, source});
}
consteval model::MetricDef Counter(std::string_view name, std::string_view field,
                                   std::string_view prometheus, std::string_view unit,
                                   double resolution, std::string_view help,
                                   std::string_view source) {
  return model::Metric({name, "", field, prometheus, unit, model::MetricKind::kCounter,
                        model::Scope::kProcess, resolution, help, source});
}
constexpr std::array<model::MetricDef, kMetricCount> kMetrics = {
    Counter("process.rank.cpu", "rank_cpu_s", "rank_cpu_seconds_total", "s", 0.01,
            "CPU time of the rank's main process, all threads, without its workers.",
            "/proc/PID/stat"),
    Gauge("process.rank.rss", "rank_rss_bytes", "rank_resident_memory_bytes", "By",
          "Resident memory of the rank's main process, shared pages included.", "/proc/PID/stat"),
    Gauge("process.workers.count", "workers", "rank_workers", "{process}",
          "Worker processes of the rank that live: those that run the main process's program.",
          "/proc"),
    Gauge("process.workers.blocked", "workers_blocked", "rank_workers_blocked", "{process}",
          "Workers of the rank in an uninterruptible wait, mostly for storage.", "/proc/PID/stat"),
    Counter("process.workers.cpu", "worker_cpu_s", "rank_worker_cpu_seconds_total", "s", 0.01,
            "CPU time of the rank's workers; the last moments of one that ended are not in it.",
            "/proc/PID/stat"),
    Gauge("process.workers.rss", "worker_rss_bytes", "rank_worker_resident_memory_bytes", "By",
          "Resident memory of the rank's workers; shared pages count once a worker.",
          "/proc/PID/stat"),
    Counter("process.workers.faults", "worker_major_faults", "rank_worker_page_faults_total",
            "{fault}", 1, "Page faults of the rank's workers that had to read storage.",
            "/proc/PID/stat"),
    Counter("process.workers.io.read", "worker_read_bytes", "rank_worker_read_bytes_total", "By", 1,
            "Bytes that the rank's workers had read from storage.", "/proc/PID/io"),
    Gauge("process.workers.anon", "worker_anon_bytes", "rank_worker_anonymous_memory_bytes", "By",
          "Private memory of the rank's workers; pages shared since a fork count once a worker.",
          "/proc/PID/status"),
    Counter("process.rank.run_delay", "rank_run_delay_s", "rank_run_delay_seconds_total", "s", 1e-6,
            "Time that threads of the rank's main process were ready to run and had no CPU.",
            "/proc/PID/task/TID/schedstat"),
    Counter("process.workers.run_delay", "worker_run_delay_s",
            "rank_worker_run_delay_seconds_total", "s", 1e-6,
            "Time that threads of the rank's workers were ready to run and had no CPU.",
            "/proc/PID/task/TID/schedstat"),
};

}  // namespace

std::optional<MemorySplit> ParseMemorySplit(std::string_view text) {
  const auto anon = NumberOfKey(text, "RssAnon:");
  const auto file = NumberOfKey(text, "RssFile:");
  const auto shmem = NumberOfKey(text, "RssShmem:");
  if (!anon || !file || !shmem) return std::nullopt;
  return MemorySplit{.anon_bytes = *anon * 1024,
                     .file_bytes = *file * 1024,
                     .shmem_bytes = *shmem * 1024,
                     .swap_bytes = NumberOfKey(text, "VmSwap:").value_or(0) * 1024};
}

RankTotals::RankTotals(const SourceContext& context)
    : context_(context),
      ticks_per_s_(static_cast<double>(::sysconf(_SC_CLK_TCK))),
      page_bytes_(static_cast<double>(::sysconf(_SC_PAGESIZE))) {}

std::span<const model::MetricDef> RankTotals::Metrics() { return kMetrics; }

RankTotals::Rank& RankTotals::Find(const RankProcesses& processes) {
  const int32_t number = processes.rank.value_or(model::kNoRank);
  auto [found, is_new] = ranks_.try_emplace(number);
  Rank& rank = found->second;
  if (is_new || rank.main != processes.main->key.pid) {
    rank.main = processes.main->key.pid;
    model::Labels labels;
    if (processes.rank) labels.emplace_back("rank", std::to_string(number));
    model::Labels attributes = {{"pid", std::to_string(rank.main)}};
    if (processes.local_rank) {
      attributes.emplace_back("local_rank", std::to_string(*processes.local_rank));
    }
    const model::EntityId entity = context_.registry.AddEntity(
        {.id = 0,
         .scope = model::Scope::kProcess,
         .name = processes.rank ? fmt::format("rank:{}", number) : "main",
         .labels = std::move(labels),
         .attributes = std::move(attributes)});
    for (size_t i = 0; i < kMetricCount; ++i) {
      const Tier tier = i < kWorkerAnon ? Tier::kTick : Tier::kSlow;
      rank.series[i] =
          context_.registry.AddSeries(entity, kMetrics[i], TierPeriodNs(tier, context_.tick_ns));
    }
  }
  return rank;
}

void RankTotals::GiveCounter(model::Samples& out, Rank& rank, size_t metric, size_t sum, Counts now,
                             double unit) {
  rank.sums[sum].Update(std::move(now));
  out.values.push_back(
      {.series = rank.series[metric], .value = static_cast<double>(rank.sums[sum].total()) / unit});
}

void RankTotals::GiveTick(model::Samples& out, const RankProcesses& processes,
                          const std::map<int32_t, ProcIo>& io, Rank& rank) const {
  const auto give = [&](Metric metric, double value) {
    out.values.push_back({.series = rank.series[metric], .value = value});
  };
  const ProcStat& main = *processes.main;
  GiveCounter(out, rank, kMainCpu, kMainCpuSum, {{main.key, main.cpu_ticks}}, ticks_per_s_);
  if (!main.ended()) give(kMainRss, static_cast<double>(main.rss_pages) * page_bytes_);
  Counts cpu, major, read;
  uint64_t blocked = 0, rss_pages = 0;
  bool io_known = true;
  rank.workers.clear();
  for (const ProcStat* worker : processes.workers) {
    cpu[worker->key] = worker->cpu_ticks;
    major[worker->key] = worker->major_faults;
    if (worker->ended()) continue;
    rank.workers.push_back(worker->key.pid);
    rss_pages += worker->rss_pages;
    blocked += worker->state == 'D' ? 1 : 0;
    const auto bytes = io.find(worker->key.pid);
    io_known = io_known && bytes != io.end();
    if (bytes != io.end()) read[worker->key] = bytes->second.read_bytes;
  }
  give(kWorkers, static_cast<double>(rank.workers.size()));
  give(kWorkersBlocked, static_cast<double>(blocked));
  GiveCounter(out, rank, kWorkerCpu, kWorkerCpuSum, std::move(cpu), ticks_per_s_);
  GiveCounter(out, rank, kWorkerMajor, kMajorSum, std::move(major), 1);
  if (io_known) GiveCounter(out, rank, kWorkerRead, kReadSum, std::move(read), 1);
  if (!rank.workers.empty()) give(kWorkerRss, static_cast<double>(rss_pages) * page_bytes_);
}

void RankTotals::SampleTick(model::Samples& out, int proc_fd, const std::vector<ProcStat>& members,
                            const std::map<int32_t, ProcIo>& io) {
  for (auto& [number, rank] : ranks_) rank.here = false;
  for (const RankProcesses& processes :
       roles_.Assign(out.t_ns, proc_fd, context_.job.root_pid, members)) {
    Rank& rank = Find(processes);
    rank.here = true;
    GiveTick(out, processes, io, rank);
  }
}

void RankTotals::SampleMemory(model::Samples& out, const std::map<int32_t, MemorySplit>& memory) {
  for (const auto& [number, rank] : ranks_) {
    if (!rank.here || rank.workers.empty()) continue;
    uint64_t anon_bytes = 0;
    bool all = true;
    for (const int32_t pid : rank.workers) {
      const auto split = memory.find(pid);
      all = all && split != memory.end();
      if (split != memory.end()) anon_bytes += split->second.anon_bytes;
    }
    if (!all) continue;
    out.values.push_back(
        {.series = rank.series[kWorkerAnon], .value = static_cast<double>(anon_bytes)});
  }
}

void RankTotals::SampleWaits(model::Samples& out, const std::vector<TreeThreads::Wait>& waits) {
  if (waits.empty()) return;  // the kernel does not count them
  for (auto& [number, rank] : ranks_) {
    if (!rank.here) continue;
    Counts main, workers;
    for (const TreeThreads::Wait& wait : waits) {
      if (wait.pid == rank.main) main[wait.thread] = wait.ns;
      const bool is_worker =
          std::find(rank.workers.begin(), rank.workers.end(), wait.pid) != rank.workers.end();
      if (is_worker) workers[wait.thread] = wait.ns;
    }
    GiveCounter(out, rank, kMainDelay, kMainWaitSum, std::move(main), 1e9);
    GiveCounter(out, rank, kWorkerDelay, kWorkerWaitSum, std::move(workers), 1e9);
  }
}

}  // namespace epochmeter::collect
