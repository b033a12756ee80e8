// SPDX-License-Identifier: Apache-2.0
#include "diagnose/run_row.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "base/clock.h"
#include "diagnose/statistics.h"
#include "model/entity_name.h"

namespace epochmeter::diagnose {
namespace {

using model::EpochRow;
using model::Report;
using model::Run;
using model::RunRow;
using model::Severity;
using model::Stat;
using model::TimeUse;

// Time of a device that trained nothing that lasted.
constexpr std::array<TimeUse, 7> kWasted = {
    TimeUse::kDataWait, TimeUse::kThrottle, TimeUse::kRepeated, TimeUse::kStall,
    TimeUse::kIdle,     TimeUse::kTearDown, TimeUse::kUnused};

std::optional<double> Figure(const model::StatTable& table, std::string_view field,
                             std::optional<double> Stat::*figure) {
  const auto entry = std::find_if(table.begin(), table.end(),
                                  [field](const auto& known) { return known.first == field; });
  if (entry == table.end() || !(entry->second.*figure)) return {};
  return std::isfinite(*(entry->second.*figure)) ? entry->second.*figure : std::nullopt;
}

std::string StateOf(const Run& run) {
  if (!run.end) return "no end";
  if (run.end->exit_code) return "exit " + std::to_string(*run.end->exit_code);
  if (run.end->signal) return "signal " + std::to_string(*run.end->signal);
  return run.end->reason;
}

void SetIdentity(const Run& run, const Report& report, RunRow* row) {
  row->state = StateOf(run);
  row->started_wall_ns = run.WallNs(run.Recorded().begin_ns);
  if (report.duration_s > 0) row->duration_s = report.duration_s;
  if (!run.info) return;
  row->run_id = run.info->run_id;
  const auto attribute = [&](std::string_view key) {
    return std::string(model::Find(run.info->attributes, key));
  };
  row->name = attribute("name").empty() ? attribute("tag.name") : attribute("name");
  row->command = attribute("command");
  row->host = attribute("host");
}

void SetProgress(const Report& report, RunRow* row) {
  using Process = std::pair<std::optional<int32_t>, std::optional<int64_t>>;
  std::map<Process, uint64_t> steps;
  std::set<int64_t> epochs;
  double wait_s = 0, step_s = 0;
  for (const EpochRow& epoch : report.epochs) {
    uint64_t& count = steps[{epoch.rank, epoch.pid}];
    if (epoch.steps_known) count += epoch.steps;
    if (epoch.epoch != model::kNoEpoch) epochs.insert(epoch.epoch);
    if (!epoch.data_wait_ratio || !epoch.step_s.mean) continue;
    const double all_s = *epoch.step_s.mean * static_cast<double>(epoch.step_s.count);
    step_s += all_s;
    wait_s += *epoch.data_wait_ratio * all_s;
  }
  row->ranks = steps.size();
  row->epochs = epochs.size();
  for (const auto& [process, count] : steps) row->steps = std::max(row->steps, count);
  if (step_s > 0) row->data_wait_ratio = wait_s / step_s;
}

void SetPeak(const Report& report, RunRow* row) {
  std::map<int64_t, std::pair<double, double>> sums;  // epoch -> sum of utilisation, ranks
  for (const EpochRow& epoch : report.epochs) {
    const std::optional<double>& used = epoch.own_gpus.utilization_ratio;
    if (!used || !std::isfinite(*used) || epoch.epoch == model::kNoEpoch) continue;
    auto& [sum, ranks] = sums[epoch.epoch];
    sum += *used;
    ++ranks;
  }
  for (const auto& [epoch, entry] : sums) {
    const double mean = entry.first / entry.second;
    if (row->peak_utilization_ratio && *row->peak_utilization_ratio >= mean) continue;
    row->peak_epoch = epoch;
    row->peak_utilization_ratio = mean;
  }
}

std::string ModelOf(const Run& run, const model::GpuStats& gpu) {
  for (const model::EntityDef* entity : run.EntitiesOf(model::Scope::kGpu)) {
    if (model::GpuIndex(*entity) != gpu.gpu) continue;
    for (const std::string_view key : {"model_name", "model", "name"}) {
      const std::string_view name = model::Find(entity->attributes, key);
      if (!name.empty()) return std::string(name);
    }
  }
  return {};
}

void SetGpus(const Run& run, const Report& report, RunRow* row) {
  std::vector<double> used, active;
  for (const model::GpuStats& gpu : report.gpus) {
    if (!gpu.of_job.value_or(true)) continue;
    if (++row->gpus == 1) row->gpu_model = ModelOf(run, gpu);
    if (const auto mean = Figure(gpu.stats, "utilization_ratio", &Stat::mean)) {
      used.push_back(*mean);
    }
    if (const auto mean = Figure(gpu.stats, "sm_active_ratio", &Stat::mean)) {
      active.push_back(*mean);
    }
    const auto peak = Figure(gpu.stats, "memory_used_bytes", &Stat::max);
    if (!peak || (row->gpu_memory_peak_bytes && *row->gpu_memory_peak_bytes >= *peak)) continue;
    row->gpu_memory_peak_bytes = peak;
    row->gpu_memory_total_bytes = Figure(gpu.stats, "memory_total_bytes", &Stat::max);
  }
  const auto mean = [](const std::vector<double>& values) -> std::optional<double> {
    if (values.empty()) return {};
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  };
  row->utilization_ratio = mean(used);
  row->sm_active_ratio = mean(active);
  row->energy_j = report.energy_j;
}

// The mean of a curve of the host over the run.
std::optional<double> HostMean(const Run& run, const Report& report, std::string_view field) {
  for (const model::Curve& curve : report.curves) {
    const bool host = curve.entity < run.entities.size() &&
                      run.entities[curve.entity].scope == model::Scope::kHost;
    if (!host || curve.field != field) continue;
    model::Summary sum;
    for (const model::Summary& bucket : curve.buckets) {
      if (bucket.count > 0) sum.Append(bucket);
    }
    return sum.Mean();
  }
  return {};
}

void SetHost(const Run& run, const Report& report, RunRow* row) {
  row->iowait_ratio = HostMean(run, report, "iowait_ratio");
  row->cpu_cores = Figure(report.process, "cpu_cores", &Stat::mean);
  row->memory_peak_bytes = Figure(report.process, "rss_bytes", &Stat::max);
  const auto rate = [&](std::string_view field) -> std::optional<double> {
    const auto total = Figure(report.process, field, &Stat::total);
    if (!total || !(report.duration_s > 0)) return {};
    return *total / report.duration_s;
  };
  row->read_bytes_per_s = rate("read_bytes");
  row->written_bytes_per_s = rate("written_bytes");
}

void SetWaste(const Report& report, RunRow* row) {
  if (report.bill && report.bill->basis == "gpu") {
    row->gpu_s = base::SecondsFromNs(report.bill->total.total_ns);
    int64_t wasted_ns = 0;
    for (const TimeUse use : kWasted) wasted_ns += report.bill->total.Of(use).ns;
    // Where nobody told what any of the time went to, nothing is known of waste either.
    if (report.bill->total.Of(TimeUse::kUnknown).ns < report.bill->total.total_ns) {
      row->waste_gpu_s = base::SecondsFromNs(wasted_ns);
    }
  }
  for (const model::Finding& finding : report.findings) {
    row->criticals += finding.severity == Severity::kCritical ? 1 : 0;
    row->warnings += finding.severity == Severity::kWarning ? 1 : 0;
    if (!finding.lost_gpu_s || !std::isfinite(*finding.lost_gpu_s)) continue;
    row->waste_gpu_s = std::max(row->waste_gpu_s.value_or(0), *finding.lost_gpu_s);
  }
  // Findings stand worst first.
  if (row->criticals + row->warnings == 0) return;
  row->worst_rule = report.findings.front().rule;
  row->worst_severity = report.findings.front().severity;
  row->worst_title = report.findings.front().title;
}

}  // namespace

RunRow RowOf(const Run& run, const Report& report) {
  RunRow row;
  SetIdentity(run, report, &row);
  SetProgress(report, &row);
  SetPeak(report, &row);
  SetGpus(run, report, &row);
  SetHost(run, report, &row);
  SetWaste(report, &row);
  return row;
}

}  // namespace epochmeter::diagnose
