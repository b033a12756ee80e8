// SPDX-License-Identifier: Apache-2.0
#include "diagnose/not_measured_sources.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/strings.h"
#include "diagnose/own_gpus.h"

namespace epochmeter::diagnose {
namespace {

using model::Event;
using model::EventKind;
using model::Message;
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

std::string_view ConditionZh(SeriesCondition condition) {
  switch (condition) {
    case SeriesCondition::kOk:
      return "正常";
    case SeriesCondition::kNotSupported:
      return "不支持";
    case SeriesCondition::kNoPermission:
      return "没有权限";
    case SeriesCondition::kNotFound:
      return "未找到";
    case SeriesCondition::kError:
      return "出错";
    case SeriesCondition::kDeviceLost:
      return "设备失联";
    case SeriesCondition::kSourceGone:
      return "来源已不在";
  }
  return "原因未知";
}

// The condition with the words of the source, which stay as they are.
Message Reason(const model::SeriesState& state) {
  Message words{.en = std::string(model::SeriesConditionName(state.condition)),
                .zh = std::string(ConditionZh(state.condition))};
  std::replace(words.en.begin(), words.en.end(), '_', ' ');
  if (state.detail.empty()) return words;
  words.en += ": " + state.detail;
  words.zh += "：" + state.detail;
  return words;
}

// What goes together by a name and a reason, both in the order of first mention.
using Groups = std::vector<std::pair<std::pair<std::string, Message>, std::vector<std::string>>>;

void AddTo(std::string name, Message reason, std::string what, Groups* groups) {
  const std::pair key(std::move(name), std::move(reason));
  auto group = std::find_if(groups->begin(), groups->end(),
                            [&](const auto& known) { return known.first == key; });
  if (group == groups->end()) group = groups->insert(group, {key, {}});
  std::vector<std::string>& list = group->second;
  if (std::find(list.begin(), list.end(), what) == list.end()) list.push_back(std::move(what));
}

std::map<model::SeriesId, const model::SeriesState*> LastStates(const Run& run) {
  std::map<model::SeriesId, const model::SeriesState*> last;
  for (const model::SeriesState& state : run.states) {
    const model::SeriesState*& known = last[state.series];
    if (known == nullptr || known->t_ns <= state.t_ns) known = &state;
  }
  return last;
}

// Whether the series is of a GPU that the report leaves out as another job's.
bool IsLeftOut(const Run& run, const model::Report& report, model::SeriesId id) {
  const model::EntityId entity = run.series[id].entity;
  if (run.series[id].metric.scope != Scope::kGpu || entity >= run.entities.size()) return false;
  const int32_t index = GpuIndex(run.entities[entity]);
  return std::none_of(report.gpus.begin(), report.gpus.end(),
                      [index](const model::GpuStats& gpu) { return gpu.gpu == index; });
}

// What a source event says of its source: "unavailable" and "failing" are failures, "ok" ends
// them; a slower period and other remarks change nothing.
enum class SourceWord : uint8_t { kRemark, kWell, kFailed };
SourceWord WordOf(const Event& event) {
  const std::optional<std::string_view> state = event.Text("state");
  if (state == "ok") return SourceWord::kWell;
  return state == "failing" || state == "unavailable" ? SourceWord::kFailed : SourceWord::kRemark;
}

constexpr std::string_view kNoReason = "no reason was given";

// Sources whose last word was a failure, by its reason.
std::map<std::string, std::vector<std::string>> FailedSources(const Run& run) {
  std::map<std::string, std::string> failed;
  for (const Event& event : run.events) {
    if (event.kind != EventKind::kSource || WordOf(event) == SourceWord::kRemark) continue;
    failed.erase(event.name);
    if (WordOf(event) == SourceWord::kWell) continue;
    failed[event.name] = event.Text("reason").value_or(kNoReason);
  }
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const auto& [source, reason] : failed) by_reason[reason].push_back(source);
  return by_reason;
}

bool IsGpuSource(const std::string& name) {
  return name.find("nvml") != std::string::npos || base::StartsWith(name, "gpu");
}

}  // namespace

NotMeasured MakeNotMeasured(Message subject, Message reason) {
  return {.subject = std::move(subject.en),
          .reason = std::move(reason.en),
          .subject_zh = std::move(subject.zh),
          .reason_zh = std::move(reason.zh)};
}

bool AddFailedSources(const Run& run, std::vector<NotMeasured>* list) {
  bool gpu_source_failed = false;
  const bool has_gpu = !run.EntitiesOf(Scope::kGpu).empty();
  for (const auto& [reason, sources] : FailedSources(run)) {
    const bool gpu = std::all_of(sources.begin(), sources.end(), IsGpuSource);
    gpu_source_failed |= gpu;
    std::string subject = base::Join(sources, ", ");
    if (gpu) subject = has_gpu ? base::Join({"GPU (", subject, ")"}, "") : "GPU";
    const std::string why = reason == kNoReason ? "没有给出原因" : reason;
    list->push_back(MakeNotMeasured({.en = std::move(subject), .zh = {}},
                                    {.en = reason, .zh = "读取失败：" + why}));
  }
  return gpu_source_failed;
}

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
    std::vector<std::string> words, words_zh;
    for (const auto& [name, period_s] : sources) {
      words.push_back(name + " each " + base::FormatDuration(period_s));
      words_zh.push_back(name + " 每 " + base::FormatDuration(period_s));
    }
    if (words.empty()) continue;
    list->push_back(MakeNotMeasured(
        {.en = base::Join(words, ", "), .zh = base::Join(words_zh, "，")},
        {.en = "read less often than usual, to stay within the budget of CPU time "
               "(--cpu-budget); epochs shorter than that have fewer values of it",
         .zh = "为不超出 CPU "
               "时间预算（--cpu-budget），读取次数比平常少；比该间隔更短的轮次数值更少"}));
  }
}

void AddStates(const Run& run, const model::Report& report, std::vector<NotMeasured>* list) {
  std::set<std::string> told;
  for (const NotMeasured& item : *list) told.insert(item.reason);
  const auto last = LastStates(run);
  Groups groups;  // metric and reason -> devices
  for (const auto& [id, state] : last) {
    if (state->condition == SeriesCondition::kOk || id >= run.series.size()) continue;
    // A process that ended is not missing.
    const bool process = run.series[id].metric.scope == Scope::kProcess;
    if (process && state->condition == SeriesCondition::kSourceGone) continue;
    if (IsLeftOut(run, report, id) || told.count(state->detail) > 0) continue;
    AddTo(std::string(run.series[id].metric.field), Reason(*state),
          EntityLabel(run, run.series[id].entity), &groups);
  }
  Groups lines;  // devices and reason -> metrics
  for (const auto& [metric, devices] : groups) {
    AddTo(base::Join(devices, ", "), metric.second, metric.first, &lines);
  }
  for (const auto& [key, metrics] : lines) {
    list->push_back(
        MakeNotMeasured({.en = key.first + " " + base::Join(metrics, ", "), .zh = {}}, key.second));
  }
}

}  // namespace epochmeter::diagnose
