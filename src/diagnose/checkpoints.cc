// SPDX-License-Identifier: Apache-2.0
#include "diagnose/checkpoints.h"

#include <algorithm>

#include "diagnose/activity.h"
#include "diagnose/stalls.h"

namespace epochmeter::diagnose {
namespace {

using model::Interval;

constexpr double kShortestPause_s = 0.3;
constexpr double kUsualSteps = 5;  // a pause is so many times the usual step
constexpr size_t kFewestPauses = 3;
constexpr double kLeastWritten_bytes = 16e6;  // in a pause that is taken for a checkpoint

// What the run's processes have written, by every reading.
class Written {
 public:
  explicit Written(const Facts& facts) {
    const model::Curve* curve = facts.TreeCurve("written_bytes_per_s");
    if (curve != nullptr) readings_ = facts.Read(curve->entity, "written_bytes");
  }
  bool known() const { return readings_.t_ns.size() > 1; }
  // Between the last reading before the interval and the first after it, which may be a while off.
  std::optional<double> In(const Interval& interval) const {
    const auto& t_ns = readings_.t_ns;
    const auto after = std::lower_bound(t_ns.begin(), t_ns.end(), interval.end_ns);
    const auto before = std::upper_bound(t_ns.begin(), t_ns.end(), interval.begin_ns);
    if (after == t_ns.end() || before == t_ns.begin()) return {};
    const double growth = readings_.value[static_cast<size_t>(after - t_ns.begin())] -
                          readings_.value[static_cast<size_t>(before - t_ns.begin()) - 1];
    if (!(growth >= 0)) return {};
    return growth;
  }

 private:
  model::SeriesColumn readings_;
};

double WallSeconds(const RankFacts& rank) {
  return base::SecondsFromNs(rank.steps.back().end_ns - rank.steps.front().end_ns);
}

Saves ToldSaves(const Facts& facts, size_t index) {
  const RankFacts& rank = facts.ranks()[index];
  Saves saves{.rank = index, .spans = {}, .after_steps = {}, .wall_s = WallSeconds(rank)};
  const Interval steps{.begin_ns = rank.steps.front().end_ns, .end_ns = rank.steps.back().end_ns};
  saves.spans = Overlap(PhasesNamed(rank, {"checkpoint"}), std::span(&steps, 1));
  size_t at = 0;
  for (const Interval& span : saves.spans) {
    while (at + 1 < rank.steps.size() && rank.steps[at + 1].end_ns <= span.begin_ns) ++at;
    if (rank.steps[at].step != model::kNotKnown) saves.after_steps.push_back(rank.steps[at].step);
  }
  saves.total_s = TotalSeconds(saves.spans);
  return saves;
}

// Long pauses with large writes in them; what they take beyond a usual step counts.
Saves LikelySaves(const Facts& facts, size_t index, const Written& written) {
  const RankFacts& rank = facts.ranks()[index];
  Saves saves{
      .rank = index, .spans = {}, .after_steps = {}, .told = false, .wall_s = WallSeconds(rank)};
  const std::optional<double> usual_s = StepPeriodSeconds(rank);
  if (!usual_s) return saves;
  const std::vector<Interval> excused = PhasesNamed(rank, {"eval", "compile"});
  for (size_t i = 3; i < rank.steps.size(); ++i) {
    const Interval pause{.begin_ns = rank.steps[i - 1].end_ns, .end_ns = rank.steps[i].end_ns};
    const double beyond_s = TotalSeconds(Without(std::span(&pause, 1), excused)) - *usual_s;
    if (beyond_s < std::max(kShortestPause_s, kUsualSteps * *usual_s)) continue;
    if (written.In(pause).value_or(0) < kLeastWritten_bytes) continue;
    saves.spans.push_back(pause);
    if (rank.steps[i - 1].step != model::kNotKnown) {
      saves.after_steps.push_back(rank.steps[i - 1].step);
    }
    saves.total_s += beyond_s;
  }
  if (saves.spans.size() < kFewestPauses) saves.spans.clear();
  if (saves.spans.empty()) saves.total_s = 0;
  return saves;
}

std::optional<double> WrittenIn(const Saves& saves, const Written& written) {
  std::optional<double> sum;
  for (const Interval& span : saves.spans) {
    const std::optional<double> bytes = written.In(span);
    if (bytes) sum = sum.value_or(0) + *bytes;
  }
  return sum;
}

}  // namespace

std::vector<Saves> FindSaves(const Facts& facts) {
  const Written written(facts);
  const bool told =
      std::any_of(facts.ranks().begin(), facts.ranks().end(), [](const RankFacts& rank) {
        return std::any_of(rank.phases.begin(), rank.phases.end(),
                           [](const PhaseSpan& phase) { return phase.name == "checkpoint"; });
      });
  std::vector<Saves> found;
  for (size_t i = 0; i < facts.ranks().size(); ++i) {
    if (facts.ranks()[i].steps.size() < 2 || (!told && !written.known())) continue;
    found.push_back(told ? ToldSaves(facts, i) : LikelySaves(facts, i, written));
    found.back().written_bytes = WrittenIn(found.back(), written);
  }
  return found;
}

bool SavesMatter(const Facts& facts, const Saves& saves) {
  return !saves.spans.empty() && saves.Ratio() >= facts.limits()["checkpoint_stall.warning_ratio"];
}

std::optional<Saves> WorstSaves(const Facts& facts, std::vector<Saves> saves) {
  std::optional<Saves> worst;
  for (Saves& one : saves) {
    if (!SavesMatter(facts, one) || (worst && one.total_s <= worst->total_s)) continue;
    worst = std::move(one);
  }
  return worst;
}

}  // namespace epochmeter::diagnose
