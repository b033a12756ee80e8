// SPDX-License-Identifier: Apache-2.0
#include "model/rank_events.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string_view>

namespace epochmeter::model {
namespace {

bool Has(const RankEvents& process, EventKind kind) {
  return std::any_of(process.events.begin(), process.events.end(),
                     [kind](const Event* event) { return event->kind == kind; });
}

// A duration that can be one: a wild one must not move a begin before the clock.
bool IsDuration(double seconds) { return seconds >= 0 && seconds < 1e8; }

bool HasProgress(const RankEvents& process) {
  return process.steps != nullptr || Has(process, EventKind::kEpochBegin) ||
         Has(process, EventKind::kEpochEnd);
}

// Gives everything of the processes without a rank to the one that trains, unless several do.
void JoinWithoutRank(std::map<ProcessKey, RankEvents>* processes) {
  const auto end = processes->lower_bound(ProcessKey(kNoRank + 1));
  auto owner = end;
  for (auto process = processes->begin(); process != end; ++process) {
    if (!HasProgress(process->second)) continue;
    if (owner != end) return;
    owner = process;
  }
  if (owner == end) owner = processes->begin();
  if (owner == end) return;
  RankEvents joined = std::move(owner->second);
  joined.pid.reset();
  for (auto process = processes->begin(); process != end; ++process) {
    if (process == owner) continue;
    const std::vector<const Event*>& others = process->second.events;
    joined.events.insert(joined.events.end(), others.begin(), others.end());
  }
  processes->erase(processes->begin(), end);
  processes->emplace(ProcessKey(), std::move(joined));
}

bool IsOfTraining(const Event& event) {
  return event.kind != EventKind::kSource && event.kind != EventKind::kProcess &&
         event.kind != EventKind::kFinding && event.kind != EventKind::kAlert;
}

}  // namespace

std::vector<RankEvents> SplitByRank(const Run& run) {
  std::map<ProcessKey, RankEvents> processes;
  const auto of = [&](const ProcessKey& key) -> RankEvents& {
    RankEvents& process = processes[key];
    if (key.rank != kNoRank) process.rank = key.rank;
    if (key.pid != 0) process.pid = key.pid;
    return process;
  };
  for (const Event& event : run.events) {
    if (IsOfTraining(event)) of(ProcessOf(event)).events.push_back(&event);
  }
  for (const auto& [key, steps] : run.steps) of(key).steps = &steps;
  JoinWithoutRank(&processes);
  std::vector<RankEvents> list;
  for (auto& [key, process] : processes) {
    std::stable_sort(process.events.begin(), process.events.end(),
                     [](const Event* a, const Event* b) { return a->t_ns < b->t_ns; });
    list.push_back(std::move(process));
  }
  return list;
}

std::vector<size_t> StepOrder(const StepTable& steps) {
  std::vector<size_t> order(steps.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return steps.t_ns[a] < steps.t_ns[b]; });
  return order;
}

std::string ProcessName(std::optional<int32_t> rank, std::optional<int64_t> pid) {
  if (rank) return "rank" + std::to_string(*rank);
  return pid ? "process " + std::to_string(*pid) : "training";
}

std::vector<PhaseSpan> PhasesOf(const RankEvents& rank, int64_t last_seen_ns) {
  std::vector<PhaseSpan> phases;
  std::map<std::string_view, std::vector<size_t>> open;  // indexes of the phases with that name
  for (const Event* event : rank.events) {
    if (event->kind == EventKind::kPhaseBegin) {
      open[event->name].push_back(phases.size());
      phases.push_back({.name = event->name,
                        .interval = {.begin_ns = event->t_ns, .end_ns = last_seen_ns},
                        .epoch = event->epoch,
                        .open = true});
    }
    if (event->kind != EventKind::kPhaseEnd) continue;
    std::vector<size_t>& begun = open[event->name];
    if (!begun.empty()) {
      PhaseSpan& phase = phases[begun.back()];
      begun.pop_back();
      phase.open = false;
      phase.interval.end_ns = event->t_ns;
      if (!phase.epoch) phase.epoch = event->epoch;
      continue;
    }
    const double seconds = event->Number("duration_s").value_or(-1);
    if (!IsDuration(seconds)) continue;
    phases.push_back(
        {.name = event->name,
         .interval = {.begin_ns = event->t_ns - std::llround(seconds * 1e9), .end_ns = event->t_ns},
         .epoch = event->epoch,
         .open = false});
  }
  std::stable_sort(phases.begin(), phases.end(), [](const PhaseSpan& a, const PhaseSpan& b) {
    return a.interval.begin_ns < b.interval.begin_ns;
  });
  return phases;
}

}  // namespace epochmeter::model
