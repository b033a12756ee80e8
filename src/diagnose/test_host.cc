// SPDX-License-Identifier: Apache-2.0
#include "diagnose/test_host.h"

#include <string>

#include "model/host_metrics.h"

namespace epochmeter::diagnose {
namespace {

consteval model::MetricDef Figure(std::string_view field, std::string_view unit, model::Scope scope,
                                  model::MetricKind kind = model::MetricKind::kGauge) {
  return model::Metric({field, "", field, unit == "s" ? "test_seconds_total" : "test_bytes", unit,
                        kind, scope, unit == "s" ? 1e-6 : 1, "A figure of memory.", "test"});
}
constexpr auto kCgroup = model::Scope::kCgroup;
constexpr auto kProcess = model::Scope::kProcess;
constexpr model::MetricDef kAnon = Figure("memory_anon_bytes", "By", kCgroup);
constexpr model::MetricDef kShmem = Figure("memory_shmem_bytes", "By", kCgroup);
constexpr model::MetricDef kWorkingSet = Figure("memory_working_set_bytes", "By", kCgroup);
constexpr model::MetricDef kLimit = Figure("memory_limit_bytes", "By", kCgroup);
constexpr model::MetricDef kWaiting =
    Figure("pressure_memory_waiting_s", "s", kCgroup, model::MetricKind::kCounter);
constexpr model::MetricDef kStalled =
    Figure("pressure_memory_stalled_s", "s", kCgroup, model::MetricKind::kCounter);
constexpr model::MetricDef kTreeAnon = Figure("anon_bytes", "By", kProcess);
constexpr model::MetricDef kTreePss = Figure("pss_bytes", "By", kProcess);
constexpr model::MetricDef kTreeSwapped = Figure("swapped_bytes", "By", kProcess);
constexpr model::MetricDef kMainRss = Figure("rank_rss_bytes", "By", kProcess);
constexpr model::MetricDef kWorkers = Figure("workers", "By", kProcess);
constexpr model::MetricDef kWorkerRss = Figure("worker_rss_bytes", "By", kProcess);
constexpr model::MetricDef kWorkerAnon = Figure("worker_anon_bytes", "By", kProcess);
constexpr model::MetricDef kFsSize = Figure("fs_size_bytes", "By", model::Scope::kHost);
constexpr model::MetricDef kFsUsed = Figure("fs_used_bytes", "By", model::Scope::kHost);

void Add(TestRun& run, model::EntityId entity, const model::MetricDef& metric, double period_s,
         const LevelAt& level) {
  if (level) run.Series(entity, metric, period_s, level);
}

model::EntityId Cgroup(TestRun& run) {
  return run.Entity({.scope = kCgroup, .name = "job", .labels = {{"cgroup", "job"}}});
}

}  // namespace

void AddHostMemory(TestRun& run, double total_bytes, const LevelAt& used) {
  run.Constant(run.Host(), model::host::kMemoryTotal, 1, total_bytes);
  run.Series(run.Host(), model::host::kMemoryAvailable, 1,
             [&](double t_s) { return total_bytes - used(t_s); });
}

void AddCgroup(TestRun& run, const TestCgroup& cgroup) {
  const model::EntityId job = Cgroup(run);
  Add(run, job, kAnon, cgroup.period_s, cgroup.anon);
  Add(run, job, kShmem, cgroup.period_s, cgroup.shmem);
  Add(run, job, kWorkingSet, cgroup.period_s, cgroup.working_set);
  if (cgroup.limit_bytes > 0) run.Constant(job, kLimit, 10, cgroup.limit_bytes);
}

void AddPressure(TestRun& run, double waiting_ratio, double stalled_ratio) {
  const model::EntityId job = Cgroup(run);
  Add(run, job, kWaiting, 0.5, [=](double t_s) { return waiting_ratio * t_s; });
  Add(run, job, kStalled, 0.5, [=](double t_s) { return stalled_ratio * t_s; });
}

void AddTree(TestRun& run, const TestTree& tree) {
  Add(run, run.Tree(), model::host::kTreeRss, tree.period_s, tree.rss);
  Add(run, run.Tree(), kTreeAnon, tree.period_s, tree.anon);
  Add(run, run.Tree(), kTreePss, tree.period_s, tree.pss);
  Add(run, run.Tree(), kTreeSwapped, tree.period_s, tree.swapped);
  Add(run, run.Tree(), model::host::kTreeMajorFaults, tree.period_s, tree.major_faults);
}

void AddWorkers(TestRun& run, int32_t rank, const TestWorkers& workers) {
  const std::string number = std::to_string(rank);
  const model::EntityId entity =
      run.Entity({.scope = kProcess, .name = "rank:" + number, .labels = {{"rank", number}}});
  Add(run, entity, kMainRss, workers.period_s, workers.main_rss);
  Add(run, entity, kWorkers, workers.period_s, workers.workers);
  Add(run, entity, kWorkerRss, workers.period_s, workers.worker_rss);
  Add(run, entity, kWorkerAnon, workers.period_s, workers.worker_anon);
}

void AddShm(TestRun& run, double size_bytes, const LevelAt& used) {
  const model::EntityId shm = run.Entity(
      {.scope = model::Scope::kHost, .name = "fs:/dev/shm", .labels = {{"path", "/dev/shm"}}});
  if (size_bytes > 0) run.Constant(shm, kFsSize, 1, size_bytes);
  Add(run, shm, kFsUsed, 1, used);
}

}  // namespace epochmeter::diagnose
