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
    // A process that ended is not missing.
    const bool process = run.series[id].metric.scope == Scope::kProcess;
    if (process && state->condition == SeriesCondition::kSourceGone) continue;
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

// What a source event says of its source: "unavailable" and "failing" are failures, "ok" ends
// them; a slower period and other remarks change nothing.
enum class SourceWord : uint8_t { kRemark, kWell, kFailed };
SourceWord WordOf(const Event& event) {
  const std::optional<std::string_view> state = event.Text("state");
  if (state == "ok") return SourceWord::kWell;
  return state == "failing" || state == "unavailable" ? SourceWord::kFailed : SourceWord::kRemark;
}

// Sources whose last word was a failure, by its reason.
std::map<std::string, std::vector<std::string>> FailedSources(const Run& run) {
  std::map<std::string, std::string> failed;
  for (const Event& event : run.events) {
    if (event.kind != EventKind::kSource || WordOf(event) == SourceWord::kRemark) continue;
    failed.erase(event.name);
    if (WordOf(event) == SourceWord::kWell) continue;
    failed[event.name] = event.Text("reason").value_or("no reason was given");
  }
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const auto& [source, reason] : failed) by_reason[reason].push_back(source);
  return by_reason;
}

bool IsGpuSource(const std::string& name) {
  return name.find("nvml") != std::string::npos || base::StartsWith(name, "gpu");
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
  for (const auto& [reason, sources] : FailedSources(run)) {
    const bool gpu = std::all_of(sources.begin(), sources.end(), IsGpuSource);
    gpu_source_failed |= gpu;
    std::string subject = base::Join(sources, ", ");
    if (gpu) subject = run.EntitiesOf(Scope::kGpu).empty() ? "GPU" : "GPU (" + subject + ")";
    list.push_back({.subject = std::move(subject), .reason = reason});
  }
  AddStates(run, &list);
  AddMissing(run, report, gpu_source_failed, &list);
  return list;
}

}  // namespace epochmeter::diagnose
