// SPDX-License-Identifier: Apache-2.0
#include "diagnose/steps.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "diagnose/statistics.h"
#include "model/limits.h"

namespace epochmeter::diagnose {
namespace {

using model::EpochRow;
using model::Event;
using model::EventKind;
using model::StepTable;

constexpr std::string_view kScalarPrefix = "scalar.";

void SetScalar(std::string_view name, double value, model::ScalarTable* table) {
  for (auto& [known, old] : *table) {
    if (known != name) continue;
    old = value;
    return;
  }
  table->emplace_back(name, value);
}

void TakeScalars(const Event& event, model::ScalarTable* table) {
  for (const model::EventField& field : event.fields) {
    if (field.key.compare(0, kScalarPrefix.size(), kScalarPrefix) != 0) continue;
    const std::optional<double> value = event.Number(field.key);
    if (value) SetScalar(field.key.substr(kScalarPrefix.size()), *value, table);
  }
}

// The values of a column at `at`; empty when no step had it.
std::vector<double> Take(const StepTable& steps, std::string_view name,
                         const std::vector<size_t>& at) {
  const std::vector<double>* column = steps.Column(name);
  if (column == nullptr) return {};
  std::vector<double> values;
  values.reserve(at.size());
  for (const size_t index : at) values.push_back((*column)[index]);
  return values;
}

// Waiting as a part of the steps' time, over the steps that tell both.
std::optional<double> WaitRatio(const std::vector<double>& wait, const std::vector<double>& step) {
  double wait_sum = 0;
  double step_sum = 0;
  for (size_t i = 0; i < std::min(wait.size(), step.size()); ++i) {
    if (std::isnan(wait[i]) || std::isnan(step[i])) continue;
    wait_sum += wait[i];
    step_sum += step[i];
  }
  if (step_sum <= 0) return {};
  return wait_sum / step_sum;
}

// How many steps each event tells, where a framework ran several in one go; the others tell one.
// Not a number where an event says that it may be any ("steps" 0).
std::vector<double> Counts(const StepTable& steps, const std::vector<size_t>& at) {
  std::vector<double> counts = Take(steps, "steps", at);
  counts.resize(at.size(), 1);
  for (double& count : counts) {
    if (count == 0) {
      count = model::kAbsentNumber;
    } else if (!(count >= 1 && count < 1e9)) {
      count = 1;
    }
  }
  return counts;
}

// What one of the steps took that ran in one go.
std::vector<double> Each(std::vector<double> values, const std::vector<double>& counts) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (!model::IsAbsent(counts[i])) values[i] /= counts[i];
  }
  return values;
}

void SetStepFigures(const StepTable& steps, const std::vector<size_t>& at, EpochRow* row) {
  const std::vector<double> duration = Take(steps, "duration_s", at);
  const std::vector<double> wait = Take(steps, "data_wait_s", at);
  const std::vector<double> counts = Counts(steps, at);
  double total = 0;
  for (const double count : counts) {
    row->steps_known = row->steps_known && !model::IsAbsent(count);
    total += model::IsAbsent(count) ? 1 : count;
  }
  row->steps = static_cast<uint64_t>(total);
  row->step_s = StatOfValues(Each(duration, counts));
  row->data_wait_s = StatOfValues(Each(wait, counts));
  row->data_wait_ratio = WaitRatio(wait, duration);
  const std::vector<double> batch = Take(steps, "batch_size", at);
  double samples = 0;
  for (const double size : batch) samples += size;
  // One step without a batch size makes the sum NaN: then the number is not known, nor when sizes
  // are beyond what can be counted.
  const std::optional<int64_t> whole = model::WholeOf(samples);
  if (!batch.empty() && whole && samples >= 0) row->samples = static_cast<uint64_t>(*whole);
  for (const auto& [name, column] : steps.columns) {
    if (name.compare(0, kScalarPrefix.size(), kScalarPrefix) != 0) continue;
    for (auto index = at.rbegin(); index != at.rend(); ++index) {
      if (model::IsAbsent(column[*index])) continue;
      SetScalar(std::string_view(name).substr(kScalarPrefix.size()), column[*index], &row->scalars);
      break;
    }
  }
}

// The end event of a row that has one.
const Event* EndEvent(const RankEvents& rank, const EpochRow& row) {
  const auto at = std::lower_bound(rank.events.begin(), rank.events.end(), row.end_ns,
                                   [](const Event* event, int64_t t) { return event->t_ns < t; });
  for (auto it = at; it != rank.events.end() && (*it)->t_ns == row.end_ns; ++it) {
    if ((*it)->kind == EventKind::kEpochEnd) return *it;
  }
  return nullptr;
}

// The latest of `rows` that begins at or before `t_ns`.
EpochRow* RowBefore(int64_t t_ns, std::vector<EpochRow>* rows) {
  const auto after =
      std::upper_bound(rows->begin(), rows->end(), t_ns,
                       [](int64_t t, const EpochRow& row) { return t < row.begin_ns; });
  return after == rows->begin() ? nullptr : &*std::prev(after);
}

// The row an event belongs to; see AddPhases. `began_ns` decides between neighbours.
EpochRow* RowOf(const Event& event, int64_t began_ns, std::vector<EpochRow>* rows) {
  EpochRow* before = RowBefore(began_ns, rows);
  if (before == nullptr || !event.epoch) return before;
  for (EpochRow* row = before; row >= rows->data(); --row) {
    if (row->epoch == *event.epoch) return row;
    if (row == rows->data()) break;
  }
  return before;
}

void AddPhase(const Event& end, double seconds, std::vector<model::PhaseStats>* phases) {
  auto phase = std::find_if(phases->begin(), phases->end(), [&](const model::PhaseStats& known) {
    return known.phase == end.name;
  });
  if (phase == phases->end()) {
    phases->push_back({.phase = end.name, .count = 0, .total_s = 0, .scalars = {}});
    phase = std::prev(phases->end());
  }
  ++phase->count;
  phase->total_s += seconds;
  TakeScalars(end, &phase->scalars);
}

// Whether the training had ended when the event came, given that it was so before it.
bool EndedAt(const Event& event, bool ended) {
  if (event.kind == EventKind::kTrainEnd) return true;
  return ended && event.kind != EventKind::kTrainBegin && event.kind != EventKind::kEpochBegin;
}

// A phase that has begun.
struct OpenPhase {
  int64_t t_ns = 0;
  bool after_training = false;
};

// The lines of a log count from the one before, which may be of another epoch: of the first of an
// epoch as many steps belong to it as it says itself.
void GiveBack(const StepTable& steps, size_t first, bool from_zero, EpochRow* before,
              EpochRow* row) {
  const std::vector<double>* counts = steps.Column("steps");
  const std::vector<double>* inner = steps.Column("step_in_epoch");
  const auto known = [first](const std::vector<double>* column) {
    return column != nullptr && (*column)[first] >= 0 && (*column)[first] < 1e9;
  };
  if (!before->complete || !known(counts) || !known(inner)) return;
  const double own = (*inner)[first] + (from_zero ? 1 : 0);
  if (own >= (*counts)[first]) return;
  const auto others = static_cast<uint64_t>((*counts)[first] - own);
  row->steps -= std::min(others, row->steps);
  before->steps += others;
}

bool CountsFromZero(const StepTable& steps) {
  const std::vector<double>* inner = steps.Column("step_in_epoch");
  return inner != nullptr && std::find(inner->begin(), inner->end(), 0.0) != inner->end();
}

bool IsOfLog(const RankEvents& rank) {
  return std::any_of(rank.events.begin(), rank.events.end(), [](const Event* event) {
    return event->kind == EventKind::kTrainBegin && event->Text("source") == "log";
  });
}

}  // namespace

void AddSteps(const RankEvents& rank, std::vector<EpochRow>* rows) {
  if (rank.steps != nullptr) {
    const StepTable& steps = *rank.steps;
    const std::vector<size_t> order = StepOrder(steps);
    const std::vector<double>* partial = steps.Column("partial");
    std::vector<bool> taken(steps.size(), false);
    const bool of_log = IsOfLog(rank), from_zero = of_log && CountsFromZero(steps);
    EpochRow* before = nullptr;
    for (EpochRow& row : *rows) {
      std::vector<size_t> inside;
      auto at = std::lower_bound(order.begin(), order.end(), row.begin_ns,
                                 [&](size_t i, int64_t t) { return steps.t_ns[i] < t; });
      for (; at != order.end() && steps.t_ns[*at] <= row.end_ns; ++at) {
        const bool other = steps.epoch[*at] != model::kNotKnown && steps.epoch[*at] != row.epoch;
        if (other || taken[*at]) continue;
        taken[*at] = true;
        if (partial == nullptr || !((*partial)[*at] > 0)) inside.push_back(*at);
      }
      SetStepFigures(steps, inside, &row);
      if (of_log && before != nullptr && !inside.empty()) {
        GiveBack(steps, inside.front(), from_zero, before, &row);
      }
      before = &row;
    }
  }
  for (EpochRow& row : *rows) {
    const Event* end = EndEvent(rank, row);
    const std::optional<double> told = end == nullptr ? std::nullopt : end->Number("steps");
    if (told && *told > static_cast<double>(row.steps) && *told < 1e18) {
      row.steps = static_cast<uint64_t>(*told);
    }
  }
}

void AddScalars(const RankEvents& rank, std::vector<EpochRow>* rows, model::AfterTraining* after) {
  bool ended = false;
  for (const Event* event : rank.events) {
    ended = EndedAt(*event, ended);
    if (event->kind != EventKind::kScalar) continue;
    if (ended && !event->epoch) {
      TakeScalars(*event, &after->scalars);
      continue;
    }
    EpochRow* row = RowOf(*event, event->t_ns, rows);
    if (row != nullptr) TakeScalars(*event, &row->scalars);
  }
  for (EpochRow& row : *rows) {
    const Event* end = EndEvent(rank, row);
    if (end != nullptr) TakeScalars(*end, &row.scalars);
  }
}

void AddPhases(const RankEvents& rank, std::vector<EpochRow>* rows, model::AfterTraining* after) {
  std::map<std::string, OpenPhase> open;
  bool ended = false;
  for (const Event* event : rank.events) {
    ended = EndedAt(*event, ended);
    if (event->kind == EventKind::kPhaseBegin) {
      open[event->name] = {.t_ns = event->t_ns, .after_training = ended};
    }
    if (event->kind != EventKind::kPhaseEnd) continue;
    std::optional<double> seconds = event->Number("duration_s");
    OpenPhase began{.t_ns = event->t_ns, .after_training = ended};
    if (const auto begin = open.extract(event->name)) {
      began = begin.mapped();
      if (!seconds) seconds = base::SecondsFromNs(event->t_ns - began.t_ns);
    }
    if (!seconds) continue;  // a phase of unknown length would make the sum wrong
    if (began.after_training && !event->epoch) {
      AddPhase(*event, *seconds, &after->phases);
      continue;
    }
    EpochRow* row = RowOf(*event, began.t_ns, rows);
    if (row != nullptr) AddPhase(*event, *seconds, &row->phases);
  }
}

}  // namespace epochmeter::diagnose
