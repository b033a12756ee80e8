// SPDX-License-Identifier: Apache-2.0
#include "diagnose/timeline_spans.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "diagnose/stalls.h"

namespace epochmeter::diagnose {
namespace {

using model::EpochRow;
using model::Event;
using model::EventKind;
using model::Interval;
using model::TimeUse;

using StepKey = std::pair<int64_t, int64_t>;  // epoch, step
bool IsKnown(const StepKey& key) {
  return key.first != model::kNotKnown || key.second != model::kNotKnown;
}

// For each attempt the step from which on its work was run again; nothing where all survived.
std::vector<std::optional<StepKey>> LostFrom(const RankFacts& rank,
                                             const std::vector<Attempt>& attempts) {
  std::vector<std::optional<StepKey>> first(attempts.size());
  for (const TrainStep& step : rank.steps) {
    std::optional<StepKey>& key = first[AttemptAt(attempts, step.end_ns)];
    const StepKey its = {step.epoch, step.step};
    if (IsKnown(its)) key = std::min(key.value_or(its), its);
  }
  std::vector<std::optional<StepKey>> lost(attempts.size());
  for (size_t i = attempts.size(); i-- > 1;) {
    if (!attempts[i].continues) continue;
    lost[i - 1] = lost[i];
    if (first[i]) lost[i - 1] = std::min(lost[i].value_or(*first[i]), *first[i]);
  }
  return lost;
}

// The last row that begins before `t_ns`; null when none does.
const EpochRow* RowBefore(const RankFacts& rank, int64_t t_ns) {
  const auto next =
      std::upper_bound(rank.rows.begin(), rank.rows.end(), t_ns,
                       [](int64_t t, const EpochRow* row) { return t < row->begin_ns; });
  return next == rank.rows.begin() ? nullptr : *std::prev(next);
}

// Begin of a step as told, or where the one before it in the same row ended.
int64_t BeginOf(const RankFacts& rank, const TrainStep& step, int64_t before_ns) {
  if (step.begin_ns < step.end_ns || step.duration_s >= 0) return step.begin_ns;
  const EpochRow* row = RowBefore(rank, step.end_ns);
  if (row == nullptr || step.end_ns > row->end_ns) return step.end_ns;
  return std::max(row->begin_ns, before_ns);
}

// One step as up to three spans: its wait for data, the stall in it, and the work, which takes the
// usual time where there was one.
void AddStep(const TrainStep& step, Interval its, const Cut& work, int64_t stalled_to_ns,
             std::vector<Span>* spans) {
  const auto add = [&](int64_t begin_ns, int64_t end_ns, TimeUse use) {
    if (begin_ns >= end_ns) return;
    Cut what = work;
    if (work.use != TimeUse::kRepeated) what.use = use;
    spans->push_back({.begin_ns = begin_ns, .end_ns = end_ns, .what = what});
  };
  int64_t at = its.begin_ns;
  if (step.data_wait_s > 0) {
    const double most_ns = static_cast<double>(its.end_ns - at);
    const int64_t wait_ns = std::llround(std::min(step.data_wait_s * 1e9, most_ns));
    add(at, at + wait_ns, TimeUse::kDataWait);
    at += wait_ns;
  }
  add(at, stalled_to_ns, TimeUse::kStall);
  add(std::max(at, stalled_to_ns), its.end_ns, TimeUse::kProductive);
}

void Begin(int64_t step_ns, Attempt* attempt) {
  attempt->has_steps = true;
  attempt->first_step_ns = std::min(attempt->first_step_ns, step_ns);
}

// Epochs of a training that tells no steps.
std::vector<Span> RowSpans(const RankFacts& rank, Interval wall, std::vector<Attempt>* attempts) {
  std::vector<Span> spans;
  int64_t at = wall.begin_ns;
  for (const EpochRow* row : rank.rows) {
    const int64_t begin_ns = std::max(row->begin_ns, at);
    const int64_t end_ns = std::min(row->end_ns, wall.end_ns);
    if (begin_ns >= end_ns) continue;
    Begin(begin_ns, &(*attempts)[AttemptAt(*attempts, begin_ns)]);
    spans.push_back({.begin_ns = begin_ns,
                     .end_ns = end_ns,
                     .what = {.epoch = row->epoch,
                              .phase = PhaseNames::kTrain,
                              .use = row->complete ? TimeUse::kProductive : TimeUse::kUnknown}});
    at = end_ns;
  }
  return spans;
}

struct PhaseKind {
  std::string_view name;
  TimeUse use;
  bool strong;
};
constexpr auto kPhaseKinds = std::to_array<PhaseKind>({
    {"eval", TimeUse::kEvaluation, true},
    {"evaluation", TimeUse::kEvaluation, true},
    {"validation", TimeUse::kEvaluation, true},
    {"test", TimeUse::kEvaluation, true},
    {"checkpoint", TimeUse::kCheckpoint, true},
    {"compile", TimeUse::kCompile, true},
    {"comm", TimeUse::kCommunication, false},
    {"data", TimeUse::kDataWait, false},
    {"forward", TimeUse::kProductive, false},
    {"backward", TimeUse::kProductive, false},
    {"optimizer", TimeUse::kProductive, false},
});

PhaseKind KindOf(std::string_view name) {
  const auto* const kind =
      std::find_if(kPhaseKinds.begin(), kPhaseKinds.end(),
                   [name](const PhaseKind& known) { return known.name == name; });
  return kind == kPhaseKinds.end() ? PhaseKind{name, TimeUse::kOther, false} : *kind;
}

// Each phase within `wall`; one whose end was not seen ends with the next step that began after it
// or with a stall in it.
std::vector<Span> ClippedPhases(const RankFacts& rank, Interval wall,
                                const std::vector<Interval>& stalls, PhaseNames* names) {
  std::vector<Span> spans;
  size_t stall = 0;
  size_t step = 0;
  for (const PhaseSpan& phase : rank.phases) {
    Interval its = phase.interval;
    while (step < rank.steps.size() && rank.steps[step].begin_ns < its.begin_ns) ++step;
    if (phase.open && step < rank.steps.size()) {
      its.end_ns = std::min(its.end_ns, rank.steps[step].begin_ns);
    }
    while (stall < stalls.size() && stalls[stall].begin_ns <= its.begin_ns) ++stall;
    if (phase.open && stall < stalls.size()) {
      its.end_ns = std::min(its.end_ns, stalls[stall].begin_ns);
    }
    its.begin_ns = std::max(its.begin_ns, wall.begin_ns);
    its.end_ns = std::min(its.end_ns, wall.end_ns);
    if (its.begin_ns >= its.end_ns) continue;
    const PhaseKind kind = KindOf(phase.name);
    spans.push_back({.begin_ns = its.begin_ns,
                     .end_ns = its.end_ns,
                     .what = {.epoch = phase.epoch.value_or(EpochAt(rank, its.begin_ns)),
                              .phase = names->Number(phase.name),
                              .use = kind.use},
                     .strong = kind.strong});
  }
  return spans;
}

}  // namespace

uint32_t PhaseNames::Number(std::string_view name) {
  const auto known = std::find(names_.begin() + 1, names_.end(), name);
  if (known != names_.end()) return static_cast<uint32_t>(known - names_.begin());
  if (names_.size() < kMost) names_.emplace_back(name);
  return static_cast<uint32_t>(names_.size() - 1);
}

std::vector<Attempt> FindAttempts(const RankFacts& rank, Interval wall) {
  std::vector<Attempt> attempts = {{.begin_ns = wall.begin_ns}};
  bool begun = false;
  bool ended = false;
  for (const Event* event : rank.events) {
    if (event->kind == EventKind::kTrainEnd) ended = event->Text("status") != "failed";
    if (event->kind != EventKind::kTrainBegin) continue;
    const bool told = event->Text("source") != "log";
    const bool continues = told ? !ended : event->Number("resumes").value_or(0) > 0;
    const int64_t t_ns = std::clamp(event->t_ns, attempts.back().begin_ns, wall.end_ns);
    if (begun) attempts.push_back({.begin_ns = t_ns, .continues = continues, .told = told});
    begun = true;
    ended = false;
  }
  for (size_t i = 0; i < attempts.size(); ++i) {
    attempts[i].first_step_ns = i + 1 < attempts.size() ? attempts[i + 1].begin_ns : wall.end_ns;
  }
  return attempts;
}

size_t AttemptAt(const std::vector<Attempt>& attempts, int64_t t_ns) {
  const auto next =
      std::upper_bound(attempts.begin(), attempts.end(), t_ns,
                       [](int64_t t, const Attempt& attempt) { return t < attempt.begin_ns; });
  return next == attempts.begin() ? 0 : static_cast<size_t>(next - attempts.begin()) - 1;
}

int64_t EpochAt(const RankFacts& rank, int64_t t_ns) {
  const EpochRow* row = RowBefore(rank, t_ns);
  return row != nullptr && t_ns < row->end_ns ? row->epoch : model::kNotKnown;
}

std::vector<Interval> StallsOfRank(const Facts& facts, const RankFacts& rank) {
  const auto index = static_cast<size_t>(&rank - facts.ranks().data());
  std::vector<Interval> stalls;
  for (const Stall& stall : StallsOf(facts, index, facts.limits()["stalled_steps.factor"],
                                     facts.limits()["stalled_steps.floor_s"])) {
    stalls.push_back(stall.interval);
  }
  return stalls;
}

std::vector<Span> StepSpans(const RankFacts& rank, Interval wall,
                            const std::vector<Interval>& stalls, std::vector<Attempt>* attempts) {
  if (rank.steps.empty()) return RowSpans(rank, wall, attempts);
  const std::vector<std::optional<StepKey>> lost = LostFrom(rank, *attempts);
  const int64_t usual_ns = std::llround(StepPeriodSeconds(rank).value_or(0) * 1e9);
  size_t stall = 0;
  std::vector<Span> spans;
  spans.reserve(2 * rank.steps.size());  // what is not filled takes no memory
  int64_t before_ns = wall.begin_ns;
  for (const TrainStep& step : rank.steps) {
    const Interval its = {.begin_ns = std::max(BeginOf(rank, step, before_ns), before_ns),
                          .end_ns = std::min(step.end_ns, wall.end_ns)};
    if (its.begin_ns >= its.end_ns) continue;
    const size_t attempt = AttemptAt(*attempts, step.end_ns);
    Begin(its.begin_ns, &(*attempts)[attempt]);
    const StepKey key = {step.epoch, step.step};
    const bool thrown_away = lost[attempt] && IsKnown(key) && key >= *lost[attempt];
    const Cut work = {
        .epoch = step.epoch != model::kNotKnown ? step.epoch : EpochAt(rank, its.begin_ns),
        .phase = PhaseNames::kTrain,
        .use = thrown_away ? TimeUse::kRepeated : TimeUse::kProductive};
    while (stall < stalls.size() && stalls[stall].end_ns <= its.begin_ns) ++stall;
    const bool stalled = stall < stalls.size() && stalls[stall].begin_ns < its.end_ns;
    AddStep(step, its, work, stalled ? its.end_ns - usual_ns : its.begin_ns, &spans);
    before_ns = its.end_ns;
  }
  return spans;
}

std::vector<Span> PhaseSpans(const RankFacts& rank, Interval wall,
                             const std::vector<Interval>& stalls, PhaseNames* names) {
  const std::vector<Span> phases = ClippedPhases(rank, wall, stalls, names);
  struct Edge {
    int64_t t_ns;
    size_t phase;
    bool begins;
  };
  std::vector<Edge> edges;
  edges.reserve(2 * phases.size());
  for (size_t i = 0; i < phases.size(); ++i) {
    edges.push_back({phases[i].begin_ns, i, true});
    edges.push_back({phases[i].end_ns, i, false});
  }
  std::stable_sort(edges.begin(), edges.end(),
                   [](const Edge& a, const Edge& b) { return a.t_ns < b.t_ns; });
  std::vector<Span> spans;
  std::set<size_t> strong;  // of those that are open; the last one begun is the innermost
  std::set<size_t> weak;
  for (size_t i = 0; i < edges.size(); ++i) {
    std::set<size_t>& open = phases[edges[i].phase].strong ? strong : weak;
    if (edges[i].begins) {
      open.insert(edges[i].phase);
    } else {
      open.erase(edges[i].phase);
    }
    const std::set<size_t>& held = strong.empty() ? weak : strong;
    if (held.empty() || i + 1 == edges.size() || edges[i].t_ns == edges[i + 1].t_ns) continue;
    Span span = phases[*held.rbegin()];
    span.begin_ns = edges[i].t_ns;
    span.end_ns = edges[i + 1].t_ns;
    spans.push_back(span);
  }
  return spans;
}

}  // namespace epochmeter::diagnose
