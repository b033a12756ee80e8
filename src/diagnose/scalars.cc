// SPDX-License-Identifier: Apache-2.0
#include "diagnose/scalars.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/strings.h"
#include "diagnose/say.h"

namespace epochmeter::diagnose {
namespace {

using model::Event;
using model::EventKind;

constexpr std::string_view kPrefix = "scalar.";

// "train/valLoss_2" -> train, val, loss, 2; letters in lower case.
std::vector<std::string> Words(std::string_view name) {
  std::vector<std::string> words(1);
  bool lower_before = false;
  for (const char raw : name) {
    const auto c = static_cast<unsigned char>(raw);
    const bool upper = std::isupper(c) != 0;
    const bool part_of_word = std::isalnum(c) != 0;
    if ((!part_of_word || (upper && lower_before)) && !words.back().empty()) words.emplace_back();
    if (part_of_word) words.back() += static_cast<char>(std::tolower(c));
    lower_before = std::islower(c) != 0;
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

bool HasAny(const std::vector<std::string>& words, std::initializer_list<std::string_view> wanted) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return std::find(wanted.begin(), wanted.end(), word) != wanted.end();
  });
}

bool CanTellScalars(EventKind kind) {
  return kind == EventKind::kScalar || kind == EventKind::kEpochEnd ||
         kind == EventKind::kPhaseEnd || kind == EventKind::kTrainEnd;
}

bool IsWanted(std::string_view name, std::string_view only) { return only.empty() || name == only; }

void AddStepSeries(const RankFacts& rank, std::string_view only, std::vector<ScalarSeries>* all) {
  if (rank.table == nullptr) return;
  for (const auto& [column, values] : rank.table->columns) {
    if (!base::StartsWith(column, kPrefix)) continue;
    if (!IsWanted(std::string_view(column).substr(kPrefix.size()), only)) continue;
    ScalarSeries series{
        .name = column.substr(kPrefix.size()), .told_by = EventKind::kStep, .points = {}};
    series.points.reserve(rank.steps.size());
    for (const TrainStep& step : rank.steps) {
      if (step.index >= values.size() || model::IsAbsent(values[step.index])) continue;
      series.points.push_back({.t_ns = step.end_ns,
                               .epoch = step.epoch,
                               .step = step.step,
                               .value = values[step.index]});
    }
    if (!series.points.empty()) all->push_back(std::move(series));
  }
}

void AddEventSeries(const RankFacts& rank, std::string_view only, std::vector<ScalarSeries>* all) {
  std::map<std::pair<EventKind, std::string>, ScalarSeries> found;
  for (const Event* event : rank.events) {
    if (!CanTellScalars(event->kind)) continue;
    for (const model::EventField& field : event->fields) {
      if (!base::StartsWith(field.key, kPrefix)) continue;
      const std::optional<double> value = event->Number(field.key);
      if (!value || model::IsAbsent(*value)) continue;
      const std::string name = field.key.substr(kPrefix.size());
      if (!IsWanted(name, only)) continue;
      ScalarSeries& series = found[{event->kind, name}];
      series.name = name;
      series.told_by = event->kind;
      series.points.push_back({.t_ns = event->t_ns,
                               .epoch = event->epoch.value_or(model::kNotKnown),
                               .step = event->step.value_or(model::kNotKnown),
                               .value = *value});
    }
  }
  for (auto& [key, series] : found) all->push_back(std::move(series));
}

}  // namespace

std::vector<ScalarSeries> ScalarsOf(const RankFacts& rank, std::string_view only) {
  std::vector<ScalarSeries> all;
  AddStepSeries(rank, only, &all);
  AddEventSeries(rank, only, &all);
  return all;
}

bool IsLoss(std::string_view name) {
  const std::vector<std::string> words = Words(name);
  if (HasAny(words, {"scale", "scaler", "scaling", "weight", "coef", "lambda", "ratio", "count",
                     "num", "best", "patience"})) {
    return false;
  }
  if (HasAny(words, {"loss", "losses", "nll", "perplexity", "ppl", "elbo", "bce", "mse"})) {
    return true;
  }
  // Paddle's logs call times costs: batch_cost, reader_cost.
  const bool time = HasAny(words, {"batch", "reader", "data", "time", "step", "s", "ms"});
  return HasAny(words, {"cost"}) && !time;
}

bool IsOfEvaluation(const ScalarSeries& series) {
  if (series.told_by == EventKind::kPhaseEnd) return true;
  return HasAny(Words(series.name),
                {"val", "valid", "validation", "eval", "evaluation", "test", "dev"});
}

bool IsLossScale(std::string_view name) {
  const std::vector<std::string> words = Words(name);
  return HasAny(words, {"scale", "scaler", "scaling"}) &&
         HasAny(words, {"loss", "amp", "grad", "scaler", "scaling"});
}

bool IsLearningRate(std::string_view name) {
  const std::vector<std::string> words = Words(name);
  return HasAny(words, {"lr"}) ||
         (HasAny(words, {"learning", "learn"}) && HasAny(words, {"rate"})) ||
         name == "learningrate";
}

model::Message PlaceOf(const ScalarPoint& point, const model::Run& run) {
  const bool step = point.step != model::kNotKnown;
  const bool epoch = point.epoch != model::kNotKnown;
  if (step && epoch) {
    return Say("step {} (epoch {})", "第 {} 步（epoch {}）", point.step, point.epoch);
  }
  if (step) return Say("step {}", "第 {} 步", point.step);
  if (epoch) return Say("epoch {}", "epoch {}", point.epoch);
  const double seconds = base::SecondsFromNs(point.t_ns - run.Recorded().begin_ns);
  return Say("{} after the recording began", "录制开始后 {}", SaySeconds(seconds));
}

}  // namespace epochmeter::diagnose
