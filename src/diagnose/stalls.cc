// SPDX-License-Identifier: Apache-2.0
#include "diagnose/stalls.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "diagnose/activity.h"
#include "diagnose/statistics.h"

namespace epochmeter::diagnose {
namespace {

using model::Interval;

constexpr size_t kFewestSteps = 3;
// A pause between epochs is a stall only when it is so many times the usual one.
constexpr double kUsualPauses = 5;

double Seconds(const Interval& interval) {
  return base::SecondsFromNs(interval.end_ns) - base::SecondsFromNs(interval.begin_ns);
}

// Parts of a step: time in them is the step's.
bool IsPartOfStep(std::string_view phase) {
  static constexpr auto kParts = std::to_array<std::string_view>(
      {"data", "forward", "backward", "optimizer", "comm", "train", "epoch", "step"});
  return std::find(kParts.begin(), kParts.end(), phase) != kParts.end();
}

// Phases in which no step is expected. One that was never left excuses only for as long as its
// like took, times `factor`.
std::vector<Interval> Excuses(const RankFacts& rank, double factor, double floor_s) {
  std::map<std::string_view, double> longest_s;
  for (const PhaseSpan& phase : rank.phases) {
    double& longest = longest_s[phase.name];
    if (!phase.open) longest = std::max(longest, Seconds(phase.interval));
  }
  std::vector<Interval> excuses;
  for (const PhaseSpan& phase : rank.phases) {
    if (IsPartOfStep(phase.name)) continue;
    const double usual_s = longest_s[phase.name];
    Interval interval = phase.interval;
    if (phase.open && usual_s > 0) {
      const double most_s = std::max(factor * usual_s, floor_s);
      if (Seconds(interval) > most_s) {
        interval.end_ns = interval.begin_ns + std::llround(usual_s * 1e9);
      }
    }
    excuses.push_back(interval);
  }
  return Join(std::move(excuses));
}

// When the rank can take no more steps: it ended or failed, or the recording ends.
int64_t LastChanceNs(const RankFacts& rank) {
  int64_t last_ns = rank.training.end_ns;
  const int64_t last_step_ns = rank.steps.back().end_ns;
  for (const model::Event* event : rank.events) {
    const bool over =
        event->kind == model::EventKind::kTrainEnd || event->kind == model::EventKind::kException;
    if (over && event->t_ns >= last_step_ns) last_ns = std::min(last_ns, event->t_ns);
  }
  return last_ns;
}

bool Failed(const RankFacts& rank) {
  return std::any_of(rank.events.begin(), rank.events.end(), [&](const model::Event* event) {
    return event->kind == model::EventKind::kException && event->t_ns >= rank.steps.back().end_ns;
  });
}

// Whether the training was started again between two of its steps: it did not stand still.
bool BeginsAnew(const RankFacts& rank, const TrainStep& before, const TrainStep& after) {
  return model::AnyBetween(rank.events, before.end_ns, after.end_ns, [](const model::Event& event) {
    const bool mark = event.kind == model::EventKind::kMark && event.name == "run_start";
    return mark || event.kind == model::EventKind::kTrainBegin;
  });
}

// The usual pause between the last step of an epoch and the first of the next.
double UsualPauseSeconds(const RankFacts& rank, std::span<const Interval> excuses) {
  std::vector<double> pauses;
  for (size_t i = 1; i < rank.steps.size(); ++i) {
    if (rank.steps[i].epoch == rank.steps[i - 1].epoch) continue;
    const Interval pause{.begin_ns = rank.steps[i - 1].end_ns, .end_ns = rank.steps[i].end_ns};
    pauses.push_back(TotalSeconds(Without(std::span(&pause, 1), excuses)));
  }
  if (pauses.size() < 2) return 0;
  return UnsortedMedian(std::move(pauses)).value_or(0);
}

}  // namespace

std::optional<double> StepPeriodSeconds(const RankFacts& rank) {
  std::vector<double> periods;
  periods.reserve(rank.steps.size());
  const auto collect = [&](bool warm_up_too) {
    for (size_t i = 1; i < rank.steps.size(); ++i) {
      if (rank.steps[i].warm_up && !warm_up_too) continue;
      periods.push_back(base::SecondsFromNs(rank.steps[i].end_ns - rank.steps[i - 1].end_ns));
    }
    return periods.size() >= kFewestSteps;
  };
  if (collect(false)) return UnsortedMedian(std::move(periods));
  periods.clear();
  if (collect(true)) return UnsortedMedian(std::move(periods));
  return {};
}

std::vector<Stall> StallsOf(const Facts& facts, size_t index, double factor, double floor_s) {
  std::vector<Stall> stalls;
  const RankFacts& rank = facts.ranks()[index];
  const std::optional<double> usual_s = StepPeriodSeconds(rank);
  if (!usual_s) return stalls;
  const double limit_s = std::max(factor * *usual_s, floor_s);
  const std::vector<Interval> excuses = Excuses(rank, factor, floor_s);
  const double pause_s = UsualPauseSeconds(rank, excuses);
  const auto judge = [&](const TrainStep& before, int64_t end_ns, double least_s, bool open) {
    const Interval silence{.begin_ns = before.end_ns, .end_ns = end_ns};
    if (end_ns <= before.end_ns || Seconds(silence) <= least_s) return;
    for (const Interval& part : Without(std::span(&silence, 1), excuses)) {
      if (Seconds(part) <= least_s) continue;
      stalls.push_back({.rank = index,
                        .interval = part,
                        .open = open && part.end_ns == end_ns,
                        .after_step = before.step,
                        .median_s = *usual_s});
    }
  };
  // The first steps compile and search for algorithms: that is slow_start's.
  for (size_t i = kFewestSteps; i < rank.steps.size(); ++i) {
    const bool boundary = rank.steps[i].epoch != rank.steps[i - 1].epoch;
    const double least_s = boundary ? std::max(limit_s, kUsualPauses * pause_s) : limit_s;
    const double silent_s =
        base::SecondsFromNs(rank.steps[i].end_ns) - base::SecondsFromNs(rank.steps[i - 1].end_ns);
    if (silent_s <= least_s || BeginsAnew(rank, rank.steps[i - 1], rank.steps[i])) continue;
    judge(rank.steps[i - 1], rank.steps[i].end_ns, least_s, false);
  }
  // What a lone rank does between its last step and the end of the training is its normal end.
  const bool ended = rank.ended && !Failed(rank);
  if (ended && facts.ranks().size() < 2) return stalls;
  const size_t before = stalls.size();
  judge(rank.steps.back(), LastChanceNs(rank), std::max(limit_s, kUsualPauses * pause_s), !ended);
  for (size_t i = before; i < stalls.size(); ++i) stalls[i].ended = ended;
  return stalls;
}

std::vector<Interval> StalledTime(const Facts& facts) {
  return facts.shared().stalled.Get([&] {
    std::vector<Interval> all;
    const Limits& limits = facts.limits();
    for (size_t i = 0; i < facts.ranks().size(); ++i) {
      for (const Stall& stall :
           StallsOf(facts, i, limits["stalled_steps.factor"], limits["stalled_steps.floor_s"])) {
        all.push_back(stall.interval);
      }
    }
    return Join(std::move(all));
  });
}

}  // namespace epochmeter::diagnose
