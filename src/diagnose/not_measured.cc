// SPDX-License-Identifier: Apache-2.0
#include "diagnose/not_measured.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/strings.h"
#include "diagnose/own_gpus.h"

namespace epochmeter::diagnose {
namespace {

using model::Event;
using model::EventKind;
using model::NotMeasured;
using model::Run;
using model::Scope;
using model::SeriesCondition;

// "gpu0" for a GPU, else the entity's own name.
std::string EntityLabel(const Run& run, model::EntityId id) {
  if (id >= run.entities.size()) return "?";
  const model::EntityDef& entity = run.entities[id];
  if (entity.scope == Scope::kGpu && GpuIndex(entity) >= 0) {
    return "gpu" + std::to_string(GpuIndex(entity));
  }
  return entity.name;
}

std::string Reason(const model::SeriesState& state) {
  std::string words(model::SeriesConditionName(state.condition));
  std::replace(words.begin(), words.end(), '_', ' ');
  return state.detail.empty() ? words : words + ": " + state.detail;
}

void AddStates(const Run& run, std::vector<NotMeasured>* list) {
  std::map<model::SeriesId, const model::SeriesState*> last;
  for (const model::SeriesState& state : run.states) {
    const model::SeriesState*& known = last[state.series];
    if (known == nullptr || known->t_ns <= state.t_ns) known = &state;
  }
  // Metric and reason -> devices, in the order of first mention.
  std::vector<std::pair<std::pair<std::string, std::string>, std::vector<std::string>>> groups;
  for (const auto& [id, state] : last) {
    if (state->condition == SeriesCondition::kOk || id >= run.series.size()) continue;
    const std::pair key(run.series[id].metric.field, Reason(*state));
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& known) { return known.first == key; });
    if (group == groups.end()) group = groups.insert(group, {key, {}});
    group->second.push_back(EntityLabel(run, run.series[id].entity));
  }
  for (const auto& [key, devices] : groups) {
    list->push_back({.subject = base::Join(devices, ", ") + " " + key.first, .reason = key.second});
  }
}

std::optional<std::string> FirstText(const Event& event,
                                     std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    const auto text = event.Text(key);
    if (text && !text->empty()) return std::string(*text);
  }
  return {};
}

// A source event speaks of failure by its field "state": anything but "ok" and the rest of what is
// no failure of the source. Without the field it is a remark.
bool SpeaksOfFailure(const Event& event) {
  const std::optional<std::string> state = FirstText(event, {"state", "condition"});
  return state && *state != "ok" && *state != "slowed" && *state != "started";
}

// The last word of each source that failed.
std::map<std::string, std::string> FailedSources(const Run& run) {
  std::map<std::string, std::string> failed;
  for (const Event& event : run.events) {
    if (event.kind != EventKind::kSource) continue;
    failed.erase(event.name);
    if (!SpeaksOfFailure(event)) continue;
    failed[event.name] =
        FirstText(event, {"reason", "detail", "error", "message"}).value_or("no reason was given");
  }
  return failed;
}

bool HasFigure(const model::StatTable& table, std::string_view field) {
  return std::any_of(table.begin(), table.end(),
                     [&](const auto& entry) { return entry.first == field; });
}

bool HasEvents(const Run& run) {
  if (!run.steps.empty()) return true;
  return std::any_of(run.events.begin(), run.events.end(), [](const Event& event) {
    return event.kind == EventKind::kHello || event.kind == EventKind::kTrainBegin ||
           event.kind == EventKind::kEpochBegin;
  });
}

void AddMissing(const Run& run, const model::Report& report, bool gpu_source_failed,
                std::vector<NotMeasured>* list) {
  if (run.EntitiesOf(Scope::kGpu).empty() && !gpu_source_failed) {
    list->push_back({.subject = "GPU", .reason = "the run has no GPU"});
  }
  if (report.epochs.empty()) {
    list->push_back({.subject = "epochs and steps",
                     .reason = HasEvents(run) ? "the client reported none"
                                              : "no client spoke to the recorder"});
  } else if (run.EntitiesOf(Scope::kRank).empty()) {
    list->push_back({.subject = "allocator memory", .reason = "the client reported none"});
  }
  if (!HasFigure(report.host, "cpu_ratio")) {
    list->push_back({.subject = "host CPU", .reason = "no two readings of its counters"});
  }
  if (!HasFigure(report.host, "memory_used_bytes")) {
    list->push_back({.subject = "host memory", .reason = "no reading of it"});
  }
}

}  // namespace

std::vector<NotMeasured> FindNotMeasured(const Run& run, const model::Report& report) {
  std::vector<NotMeasured> list;
  bool gpu_source_failed = false;
  for (const auto& [source, reason] : FailedSources(run)) {
    const bool gpu = source.find("nvml") != std::string::npos || source.rfind("gpu", 0) == 0;
    gpu_source_failed |= gpu;
    list.push_back({.subject = gpu ? "GPU (" + source + ")" : source, .reason = reason});
  }
  AddStates(run, &list);
  AddMissing(run, report, gpu_source_failed, &list);
  return list;
}

}  // namespace epochmeter::diagnose
