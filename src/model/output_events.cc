// SPDX-License-Identifier: Apache-2.0
#include "model/output_events.h"

#include <algorithm>
#include <set>
#include <utility>

namespace epochmeter::model {
namespace {

// Who told what of a run.
struct Tellers {
  bool output = false;           // something was read from the output
  bool client_progress = false;  // a client told epochs or steps
  bool client_exceptions = false;
  bool client_without_rank = false;
  std::set<int32_t> client_ranks;

  void Add(const ProcessKey& process) {
    client_without_rank |= process.rank == kNoRank;
    if (process.rank != kNoRank) client_ranks.insert(process.rank);
  }
};

bool OfTraining(EventKind kind) {
  return kind != EventKind::kSource && kind != EventKind::kProcess && kind != EventKind::kFinding &&
         kind != EventKind::kAlert;
}

bool HasAbsent(const std::vector<double>& column) {
  return std::any_of(column.begin(), column.end(), IsAbsent);
}

// All of it was printed, then, or told by somebody else.
bool IsImported(const Run& run) {
  if (!run.info) return false;
  const Labels& attributes = run.info->attributes;
  return std::any_of(attributes.begin(), attributes.end(),
                     [](const auto& attribute) { return attribute.first == "source"; });
}

Tellers FindTellers(const Run& run) {
  Tellers tellers;
  for (const Event& event : run.events) {
    if (IsFromOutput(event)) {
      tellers.output = true;
    } else if (OfTraining(event.kind)) {
      tellers.client_progress |= IsProgress(event.kind);
      tellers.client_exceptions |= event.kind == EventKind::kException;
      tellers.Add(ProcessOf(event));
    }
  }
  for (const auto& [process, table] : run.steps) {
    const std::vector<double>* lines = table.Column(kLineField);
    tellers.output |= lines != nullptr;
    if (lines != nullptr && !HasAbsent(*lines)) continue;
    tellers.client_progress |= table.size() > 0;
    tellers.Add(process);
  }
  return tellers;
}

template <typename T>
void Keep(const std::vector<bool>& kept, std::vector<T>* values) {
  size_t to = 0;
  for (size_t from = 0; from < values->size(); ++from) {
    if (kept[from]) (*values)[to++] = (*values)[from];
  }
  values->resize(to);
}

void DropStepsOfOutput(Run* run) {
  for (auto table = run->steps.begin(); table != run->steps.end();) {
    StepTable& steps = table->second;
    std::vector<bool> kept(steps.size(), true);
    if (const std::vector<double>* lines = steps.Column(kLineField)) {
      for (size_t row = 0; row < kept.size(); ++row) kept[row] = IsAbsent((*lines)[row]);
    }
    Keep(kept, &steps.t_ns);
    Keep(kept, &steps.epoch);
    Keep(kept, &steps.step);
    for (auto& [name, column] : steps.columns) Keep(kept, &column);
    if (const auto lines = steps.columns.find(kLineField); lines != steps.columns.end()) {
      steps.columns.erase(lines);
    }
    table = steps.size() == 0 ? run->steps.erase(table) : std::next(table);
  }
}

// Its process is told apart by nothing but its output.
void GiveRank(int32_t rank, Run* run) {
  for (Event& event : run->events) {
    if (IsFromOutput(event) && !event.rank) event.rank = rank;
  }
  auto nameless = run->steps.extract(ProcessKey());
  if (nameless.empty()) return;
  nameless.key() = ProcessKey(rank);
  run->steps.insert(std::move(nameless));
}

}  // namespace

bool IsFromOutput(const Event& event) { return event.Text(kSourceField) == kOutputSource; }

bool IsProgress(EventKind kind) {
  return kind == EventKind::kTrainBegin || kind == EventKind::kTrainEnd ||
         kind == EventKind::kEpochBegin || kind == EventKind::kEpochEnd || kind == EventKind::kStep;
}

void PreferClientEvents(Run* run) {
  if (IsImported(*run)) return;
  const Tellers tellers = FindTellers(*run);
  if (!tellers.output) return;
  std::erase_if(run->events, [&tellers](const Event& event) {
    if (!IsFromOutput(event)) return false;
    return event.kind == EventKind::kException ? tellers.client_exceptions
                                               : tellers.client_progress;
  });
  if (tellers.client_progress) DropStepsOfOutput(run);
  if (tellers.client_ranks.size() == 1 && !tellers.client_without_rank) {
    GiveRank(*tellers.client_ranks.begin(), run);
  }
}

}  // namespace epochmeter::model
