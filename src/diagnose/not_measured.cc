// SPDX-License-Identifier: Apache-2.0
#include "diagnose/not_measured.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/clock.h"
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

void AddUnique(std::string text, std::vector<std::string>* list) {
  if (std::find(list->begin(), list->end(), text) == list->end()) list->push_back(std::move(text));
}

// Whether the series is of a GPU that the report leaves out as another job's.
bool IsLeftOut(const Run& run, const model::Report& report, model::SeriesId id) {
  const model::EntityId entity = run.series[id].entity;
  if (run.series[id].metric.scope != Scope::kGpu || entity >= run.entities.size()) return false;
  const int32_t index = GpuIndex(run.entities[entity]);
  return std::none_of(report.gpus.begin(), report.gpus.end(),
                      [index](const model::GpuStats& gpu) { return gpu.gpu == index; });
}

// `told` are the reasons that stand in the list already, for a whole source.
void AddStates(const Run& run, const model::Report& report, const std::set<std::string>& told,
               std::vector<NotMeasured>* list) {
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
    if (IsLeftOut(run, report, id) || told.count(state->detail) > 0) continue;
    const std::pair key(run.series[id].metric.field, Reason(*state));
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& known) { return known.first == key; });
    if (group == groups.end()) group = groups.insert(group, {key, {}});
    AddUnique(EntityLabel(run, run.series[id].entity), &group->second);
  }
  // Devices and reason -> metrics.
  std::vector<std::pair<std::pair<std::string, std::string>, std::vector<std::string>>> lines;
  for (const auto& [metric, devices] : groups) {
    const std::pair key(base::Join(devices, ", "), metric.second);
    auto line = std::find_if(lines.begin(), lines.end(),
                             [&](const auto& known) { return known.first == key; });
    if (line == lines.end()) line = lines.insert(line, {key, {}});
    AddUnique(metric.first, &line->second);
  }
  for (const auto& [key, metrics] : lines) {
    list->push_back({.subject = key.first + " " + base::Join(metrics, ", "), .reason = key.second});
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

// Sources that are read less often than usual in the end, because the budget of CPU time did not
// allow for more: one line for all of a process.
void AddReadLess(const Run& run, std::vector<NotMeasured>* list) {
  std::map<std::string, std::map<std::string, double>> by_process;  // source -> period in s
  for (const Event& event : run.events) {
    const auto period_s = event.Number("period_s");
    const auto usual_s = event.Number("usual_period_s");
    if (event.kind != EventKind::kSource || !period_s || !usual_s) continue;
    auto& sources = by_process[std::string(event.Text("process").value_or(""))];
    if (*period_s > *usual_s) {
      sources[event.name] = *period_s;
    } else {
      sources.erase(event.name);
    }
  }
  for (const auto& [process, sources] : by_process) {
    std::vector<std::string> words;
    for (const auto& [name, period_s] : sources) {
      words.push_back(name + " each " + base::FormatDuration(period_s));
    }
    if (words.empty()) continue;
    list->push_back({.subject = base::Join(words, ", "),
                     .reason = "read less often than usual, to stay within the budget of CPU time "
                               "(--cpu-budget); epochs shorter than that have fewer values of it"});
  }
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

// What the absence of something means once bytes of the run file are gone.
constexpr std::string_view kDamagedReason = "not known: a part of the file is damaged or missing";

constexpr std::string_view kNotInFile = "not in the imported file";

bool IsDamaged(const Run& run) {
  const auto is_damage = [](const model::Loss& loss) {
    return base::StartsWith(loss.kind, "file.") && loss.severity != model::LossSeverity::kInfo;
  };
  if (std::any_of(run.losses.begin(), run.losses.end(), is_damage)) return true;
  if (run.store == nullptr) return false;
  const std::vector<model::Loss> found = run.store->LossesFound();
  return std::any_of(found.begin(), found.end(), is_damage);
}

// "epoch 0, 3" of the rows whose table lacks the field; empty when all have it.
std::string EpochsWithout(const model::Report& report, model::StatTable model::EpochRow::*table,
                          std::string_view field) {
  constexpr size_t kMostNamed = 5;
  std::set<int64_t> epochs;
  for (const model::EpochRow& row : report.epochs) {
    if (!HasFigure(row.*table, field)) epochs.insert(row.epoch);
  }
  if (epochs.empty()) return {};
  std::vector<std::string> names;
  for (const int64_t epoch : epochs) {
    if (names.size() == kMostNamed) break;
    names.push_back(epoch == model::kNoEpoch ? "without a number" : std::to_string(epoch));
  }
  const size_t left_out = epochs.size() - names.size();
  const std::string more = left_out > 0 ? " and " + std::to_string(left_out) + " more" : "";
  return "epoch " + base::Join(names, ", ") + more;
}

// What befell the GPU, or the sampler, last before an instant.
std::string WhyLost(const Run& run, const std::vector<model::Incident>& incidents, int32_t gpu,
                    int64_t before_ns) {
  const model::Incident* last = nullptr;
  for (const model::Incident& incident : incidents) {
    const bool of_gpu = incident.gpu == gpu || incident.kind == "sampler";
    if (of_gpu && incident.kind != "gpu.back" && incident.t_ns <= before_ns) last = &incident;
  }
  if (last == nullptr) return "it was not read in that time";
  const double since_s = base::SecondsFromNs(last->t_ns - run.Recorded().begin_ns);
  return base::Join({last->kind, " at +", base::FormatDuration(since_s), ": ", last->text}, "");
}

// The CPU figures of epochs that are too short, or in which too little was read.
void AddEpochsWithout(const model::Report& report, std::string_view reason,
                      std::vector<NotMeasured>* list) {
  const auto add = [&](const std::string& subject, const model::StatTable& whole,
                       std::string_view field, model::StatTable model::EpochRow::*table) {
    const std::string epochs = EpochsWithout(report, table, field);
    if (epochs.empty() || !HasFigure(whole, field)) return;
    list->push_back({.subject = subject + " in " + epochs, .reason = std::string(reason)});
  };
  add("host CPU", report.host, "cpu_ratio", &model::EpochRow::host);
  add("job CPU", report.process, "cpu_cores", &model::EpochRow::process);
}

// Epochs that lack something of a GPU.
struct EpochsOf {
  std::vector<std::string> names;
  int64_t first_end_ns = 0;  // the end of the first of them

  void Add(const model::EpochRow& row) {
    if (names.empty()) first_end_ns = row.end_ns;
    AddUnique(row.epoch == model::kNoEpoch ? "without a number" : std::to_string(row.epoch),
              &names);
  }
  // " in epoch 2, 3".
  std::string Words() const {
    constexpr size_t kMostNamed = 5;
    const size_t named = std::min(names.size(), kMostNamed);
    std::string words =
        " in epoch " +
        base::Join({names.begin(), names.begin() + static_cast<std::ptrdiff_t>(named)}, ", ");
    if (named < names.size()) words += " and " + std::to_string(names.size() - named) + " more";
    return words;
  }
};

// "gpu1 in epoch 2, 3" with what happened to the GPU before, or to the sampler.
void AddLostGpus(const Run& run, const model::Report& report, std::vector<NotMeasured>* list) {
  std::map<int32_t, EpochsOf> lost;
  for (const model::EpochRow& row : report.epochs) {
    const std::vector<int32_t>& measured = row.own_gpus.measured;
    for (const int32_t gpu : row.own_gpus.gpus) {
      if (std::find(measured.begin(), measured.end(), gpu) == measured.end()) lost[gpu].Add(row);
    }
  }
  for (const auto& [gpu, epochs] : lost) {
    list->push_back({.subject = "gpu" + std::to_string(gpu) + epochs.Words(),
                     .reason = WhyLost(run, report.incidents, gpu, epochs.first_end_ns)});
  }
}

// The time in which the machine slept: no clock of the run counts it.
void AddSuspends(const Run& run, std::vector<NotMeasured>* list) {
  for (const Event& event : run.events) {
    if (event.kind != EventKind::kSource || event.name != "clock.suspended") continue;
    const double since_s = base::SecondsFromNs(event.t_ns - run.Recorded().begin_ns);
    list->push_back({.subject = base::FormatDuration(event.Number("for_s").value_or(0)) +
                                " before +" + base::FormatDuration(since_s),
                     .reason = "suspended: the machine slept"});
  }
}

// The energy of GPUs that were measured in an epoch and have one elsewhere.
void AddLostEnergy(const model::Report& report, std::vector<NotMeasured>* list) {
  std::map<int32_t, EpochsOf> lost;
  std::set<int32_t> known;
  for (const model::GpuStats& gpu : report.gpus) {
    if (gpu.energy_j) known.insert(gpu.gpu);
  }
  for (const model::EpochRow& row : report.epochs) {
    const std::vector<int32_t>& measured = row.own_gpus.measured;
    for (const model::GpuStats& gpu : row.gpus) {
      if (gpu.energy_j) known.insert(gpu.gpu);
      const bool counts = std::find(measured.begin(), measured.end(), gpu.gpu) != measured.end();
      if (counts && !gpu.energy_j) lost[gpu.gpu].Add(row);
    }
  }
  for (const auto& [gpu, epochs] : lost) {
    if (known.count(gpu) == 0) continue;
    list->push_back({.subject = "gpu" + std::to_string(gpu) + " energy" + epochs.Words(),
                     .reason = "its counter was reset, stood still or was not read in time, and "
                               "the samples of power do not cover it"});
  }
}

// Steps that hooks saw without any loss: they can't see every loop's.
void AddLoss(const model::Report& report, std::vector<NotMeasured>* list) {
  if (report.progress_source != "hook") return;
  bool steps = false;
  for (const model::EpochRow& row : report.epochs) {
    steps |= row.steps > 0;
    // "loss", "train_loss" and their like.
    const auto is_loss = [](const auto& scalar) {
      return scalar.first.find("loss") != std::string::npos;
    };
    if (std::any_of(row.scalars.begin(), row.scalars.end(), is_loss)) return;
  }
  if (!steps) return;
  list->push_back({.subject = "loss",
                   .reason = "the hooks saw none: they do not read it in a plain loop on a GPU, "
                             "inside tf.function, or with several losses a step; "
                             "epochmeter.log(loss=...) tells it"});
}

// A sampler that never came to tell of any GPU is not the absence of GPUs.
std::string WhyNoGpu(const model::Report& report) {
  for (const model::Incident& incident : report.incidents) {
    if (incident.kind == "sampler") return incident.text;
  }
  return "the run has no GPU";
}

void AddMissing(const Run& run, const model::Report& report, bool gpu_source_failed,
                std::vector<NotMeasured>* list) {
  const bool damaged = IsDamaged(run);
  const bool imported = IsImported(run);
  const auto because = [&](std::string_view reason) {
    return damaged ? kDamagedReason : imported ? kNotInFile : reason;
  };
  const auto add = [&](std::string subject, std::string_view reason) {
    list->push_back({.subject = std::move(subject), .reason = std::string(because(reason))});
  };
  if (run.EntitiesOf(Scope::kGpu).empty() && !gpu_source_failed) add("GPU", WhyNoGpu(report));
  if (report.epochs.empty()) {
    add("epochs and steps",
        HasEvents(run) ? "the client reported none" : "no client spoke to the recorder");
  } else if (run.EntitiesOf(Scope::kRank).empty()) {
    add("allocator memory", "the client reported none");
  }
  if (!HasFigure(report.host, "cpu_ratio")) add("host CPU", "no two readings of its counters");
  if (!HasFigure(report.host, "memory_used_bytes")) add("host memory", "no reading of it");
  if (!damaged) {
    AddLostGpus(run, report, list);
    AddLostEnergy(report, list);
    AddLoss(report, list);
  }
  AddEpochsWithout(report, damaged ? kDamagedReason : "too few readings of its counters in it",
                   list);
}

}  // namespace

bool IsImported(const Run& run) {
  return run.info && !Find(run.info->attributes, "source").empty();
}

std::vector<NotMeasured> FindNotMeasured(const Run& run, const model::Report& report) {
  std::vector<NotMeasured> list;
  bool gpu_source_failed = false;
  std::set<std::string> told;
  for (const auto& [reason, sources] : FailedSources(run)) {
    const bool gpu = std::all_of(sources.begin(), sources.end(), IsGpuSource);
    gpu_source_failed |= gpu;
    told.insert(reason);
    std::string subject = base::Join(sources, ", ");
    if (gpu)
      subject =
          run.EntitiesOf(Scope::kGpu).empty() ? "GPU" : base::Join({"GPU (", subject, ")"}, "");
    list.push_back({.subject = std::move(subject), .reason = reason});
  }
  AddReadLess(run, &list);
  AddStates(run, report, told, &list);
  AddSuspends(run, &list);
  AddMissing(run, report, gpu_source_failed, &list);
  return list;
}

}  // namespace epochmeter::diagnose
