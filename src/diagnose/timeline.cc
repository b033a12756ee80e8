// SPDX-License-Identifier: Apache-2.0
#include "diagnose/timeline.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "diagnose/timeline_spans.h"
#include "model/limits.h"

namespace epochmeter::diagnose {
namespace {

using model::EpochRow;
using model::Event;
using model::EventKind;
using model::Interval;
using model::TimeUse;

// When nothing was recorded of what the training told: the recorder was away or stood still.
std::vector<Interval> Absences(const model::Run& run) {
  std::vector<Interval> away;
  for (const Event& event : run.events) {
    if (event.kind != EventKind::kSource) continue;
    double seconds = 0;
    if (event.name == "recorder") seconds = event.Number("away_s").value_or(0);
    if (event.name == "recorder.paused") seconds = event.Number("for_s").value_or(0);
    const auto length_ns = model::WholeOf(seconds * 1e9);
    if (!length_ns || *length_ns <= 0) continue;
    away.push_back(
        {.begin_ns = event.t_ns - std::min(*length_ns, model::kMostNs), .end_ns = event.t_ns});
  }
  return away;
}

// Rows whose end tells more steps than arrived.
void AddRowsWithLosses(const RankFacts& rank, std::vector<Interval>* away) {
  if (rank.steps.empty()) return;
  size_t at = 0;
  for (const EpochRow* row : rank.rows) {
    double seen = 0;
    while (at < rank.steps.size() && rank.steps[at].end_ns < row->begin_ns) ++at;
    for (; at < rank.steps.size() && rank.steps[at].end_ns <= row->end_ns; ++at) {
      seen += rank.steps[at].steps;
    }
    if (static_cast<double>(row->steps) > seen + 0.5) {
      away->push_back({.begin_ns = row->begin_ns, .end_ns = row->end_ns});
    }
  }
}

// In the order of time, without overlaps.
std::vector<Interval> Merged(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.begin_ns < b.begin_ns; });
  std::vector<Interval> merged;
  for (const Interval& next : intervals) {
    if (!merged.empty() && next.begin_ns <= merged.back().end_ns) {
      merged.back().end_ns = std::max(merged.back().end_ns, next.end_ns);
    } else {
      merged.push_back(next);
    }
  }
  return merged;
}

class Composer {
 public:
  Composer(const Facts& facts, const RankFacts& rank, Interval wall)
      : rank_(rank), wall_(wall), attempts_(FindAttempts(rank, wall)) {
    stalls_ = StallsOfRank(facts, rank);
    steps_ = StepSpans(rank, wall, stalls_, &attempts_);
    std::vector<Interval> away = Absences(facts.run());
    AddRowsWithLosses(rank, &away);
    away_ = Merged(std::move(away));
    for (const EpochRow* row : rank.rows) {
      row_edges_.push_back(row->begin_ns);
      row_edges_.push_back(row->end_ns);
    }
    std::sort(row_edges_.begin(), row_edges_.end());
  }

  RankTimeline Make(PhaseNames* names) {
    phases_ = PhaseSpans(rank_, wall_, stalls_, names);
    StartWithPhases();
    RankTimeline made;
    made.told_steps = !steps_.empty() || !phases_.empty();
    for (size_t i = 1; i < attempts_.size(); ++i) made.restarts += attempts_[i].continues ? 1 : 0;
    timeline_.end_ns = wall_.end_ns;
    if (made.told_steps) {
      timeline_.cuts.reserve(steps_.size());
      Sweep();
    } else {
      Put(wall_.begin_ns, {.epoch = model::kNotKnown});
    }
    made.timeline = std::move(timeline_);
    return made;
  }

 private:
  // An attempt without steps starts up until its first phase.
  void StartWithPhases() {
    for (auto phase = phases_.rbegin(); phase != phases_.rend(); ++phase) {
      const size_t i = AttemptAt(attempts_, phase->begin_ns);
      if (!attempts_[i].has_steps) attempts_[i].first_step_ns = phase->begin_ns;
    }
  }

  void Sweep() {
    size_t step = 0;
    size_t phase = 0;
    for (int64_t at = wall_.begin_ns; at < wall_.end_ns;) {
      while (step < steps_.size() && steps_[step].end_ns <= at) ++step;
      while (phase < phases_.size() && phases_[phase].end_ns <= at) ++phase;
      int64_t next = wall_.end_ns;
      const Span* in_step = Under(steps_, step, at, &next);
      const Span* in_phase = Under(phases_, phase, at, &next);
      if (in_step == nullptr && in_phase == nullptr) {
        const bool last = step == steps_.size() && phase == phases_.size();
        PutHole({.begin_ns = at, .end_ns = next}, last);
      } else {
        Put(at, Chosen(in_step, in_phase));
      }
      at = next;
    }
  }

  // The span that holds at `at`, or null; `next` comes down to where that changes.
  static const Span* Under(const std::vector<Span>& spans, size_t index, int64_t at,
                           int64_t* next) {
    if (index == spans.size()) return nullptr;
    const Span& span = spans[index];
    *next = std::min(*next, span.begin_ns > at ? span.begin_ns : span.end_ns);
    return span.begin_ns > at ? nullptr : &span;
  }

  static Cut Chosen(const Span* step, const Span* phase) {
    if (step == nullptr) return phase->what;
    if (phase == nullptr) return step->what;
    if (phase->strong) return phase->what;
    Cut what = step->what;
    what.phase = phase->what.phase;
    const TimeUse use = phase->what.use;
    const bool told = use == TimeUse::kDataWait || use == TimeUse::kCommunication;
    if (told && what.use == TimeUse::kProductive) what.use = use;
    return what;
  }

  void Put(int64_t begin_ns, Cut what) {
    if (!timeline_.cuts.empty() && timeline_.cuts.back().SameButTime(what)) return;
    what.begin_ns = begin_ns;
    timeline_.cuts.push_back(what);
  }

  // Time without a step and a phase. Attempts cut it, since each starts up for itself.
  void PutHole(Interval hole, bool last) {
    for (size_t i = AttemptAt(attempts_, hole.begin_ns);
         i < attempts_.size() && attempts_[i].begin_ns < hole.end_ns; ++i) {
      const int64_t to = i + 1 < attempts_.size() ? attempts_[i + 1].begin_ns : wall_.end_ns;
      const Interval part = {.begin_ns = std::max(hole.begin_ns, attempts_[i].begin_ns),
                             .end_ns = std::min(hole.end_ns, to)};
      if (part.begin_ns >= part.end_ns) continue;
      if (last && i + 1 == attempts_.size() && part.begin_ns >= attempts_[i].first_step_ns) {
        PutTail(part);
      } else {
        PutPart(part, UseOf(part, i));
      }
    }
  }

  TimeUse UseOf(Interval part, size_t attempt) const {
    if (part.begin_ns < attempts_[attempt].first_step_ns) return TimeUse::kStartUp;
    // What is left of an attempt that died, behind its last step.
    const bool ends =
        attempt + 1 < attempts_.size() && part.end_ns == attempts_[attempt + 1].begin_ns;
    // A log does not say when that was over.
    if (ends && !attempts_[attempt + 1].told) return TimeUse::kUnknown;
    return ends && attempts_[attempt + 1].continues ? TimeUse::kTearDown : TimeUse::kIdle;
  }

  void PutTail(Interval part) {
    int64_t end_ns = part.begin_ns;
    if (rank_.ended) end_ns = std::clamp(rank_.training.end_ns, part.begin_ns, part.end_ns);
    PutPart({.begin_ns = part.begin_ns, .end_ns = end_ns}, TimeUse::kIdle);
    PutPart({.begin_ns = end_ns, .end_ns = part.end_ns}, TimeUse::kTearDown);
  }

  // Cut where epochs begin and end, where nothing was recorded, and where it should have gone on.
  void PutPart(Interval part, TimeUse use) {
    auto edge = std::upper_bound(row_edges_.begin(), row_edges_.end(), part.begin_ns);
    for (int64_t at = part.begin_ns; at < part.end_ns;) {
      int64_t next = part.end_ns;
      while (edge != row_edges_.end() && *edge <= at) ++edge;
      if (edge != row_edges_.end()) next = std::min(next, *edge);
      const bool away = IsIn(away_, at, &next);
      const bool stalled = use != TimeUse::kStartUp && IsIn(stalls_, at, &next);
      Put(at, {.epoch = EpochAt(rank_, at),
               .phase = PhaseNames::kOutside,
               .use = away      ? TimeUse::kUnknown
                      : stalled ? TimeUse::kStall
                                : use});
      at = next;
    }
  }

  // `next` comes down to where the answer changes.
  static bool IsIn(const std::vector<Interval>& intervals, int64_t at, int64_t* next) {
    const auto found =
        std::upper_bound(intervals.begin(), intervals.end(), at,
                         [](int64_t t, const Interval& each) { return t < each.end_ns; });
    if (found == intervals.end()) return false;
    *next = std::min(*next, found->begin_ns > at ? found->begin_ns : found->end_ns);
    return found->begin_ns <= at;
  }

  const RankFacts& rank_;
  const Interval wall_;
  std::vector<Attempt> attempts_;
  std::vector<Span> steps_, phases_;
  std::vector<Interval> stalls_, away_;
  std::vector<int64_t> row_edges_;
  Timeline timeline_;
};

}  // namespace

RankTimeline MakeRankTimeline(const Facts& facts, const RankFacts& rank, Interval wall,
                              PhaseNames* names) {
  return Composer(facts, rank, wall).Make(names);
}

}  // namespace epochmeter::diagnose
