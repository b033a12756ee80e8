// SPDX-License-Identifier: Apache-2.0
#include "diagnose/rank_times.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "diagnose/statistics.h"

namespace epochmeter::diagnose {
namespace {

// The last kOfSteps steps must take so many times the others' medians together: in ranks that wait
// for one another a slow step is followed by a fast one, and they come out even.
constexpr double kClearly = 1.1;

// What is known of a rank's last kOfSteps steps.
struct Recent {
  std::array<double, kOfSteps> own_s{}, others_s{};
  size_t count = 0;
  void Add(double own, double others) {
    own_s[count % kOfSteps] = own;
    others_s[count % kOfSteps] = others;
    ++count;
  }
  bool IsSlow(double k) const {
    size_t slow = 0;
    double own = 0;
    double others = 0;
    for (size_t i = 0; i < std::min(count, kOfSteps); ++i) {
      slow += own_s[i] > k * others_s[i] ? 1 : 0;
      own += own_s[i];
      others += others_s[i];
    }
    return count >= kOfSteps && slow >= kSlowSteps && own > kClearly * others;
  }
};

// `group` holds the same step of several ranks, the fastest first.
void JudgeStep(std::span<const RankStep> group, double k, std::vector<Recent>* recent,
               std::vector<RankTime>* ranks) {
  std::vector<double> sorted;
  sorted.reserve(group.size());
  for (const RankStep& step : group) sorted.push_back(step.duration_s);
  for (size_t i = 0; i < group.size(); ++i) {
    const double others_s = MedianOfOthers(sorted, i);
    Recent& last = (*recent)[group[i].rank];
    last.Add(group[i].duration_s, others_s);
    const double ratio = group[i].duration_s / others_s;
    if (ratio <= k || !last.IsSlow(k)) continue;
    RankTime& rank = (*ranks)[group[i].rank];
    if (rank.slow++ == 0) rank.first_slow_step = group[i].step;
    rank.last_slow_step = group[i].step;
    rank.worst_ratio = std::max(rank.worst_ratio, ratio);
    rank.excess_s += group[i].duration_s - others_s;
  }
}

struct WindowMedian {
  int64_t window = 0;
  size_t rank = 0;
  double median_s = 0;
};

int64_t WindowOf(int64_t step) {
  const auto length = static_cast<int64_t>(kWindowSteps);
  return step / length - (step % length < 0 ? 1 : 0);
}

// `steps` in the order of ranks and steps.
std::vector<WindowMedian> WindowMedians(std::span<const RankStep> steps,
                                        std::vector<RankTime>* ranks) {
  std::vector<WindowMedian> medians;
  std::vector<double> all;
  std::vector<double> window;
  for (size_t i = 0; i < steps.size(); ++i) {
    all.push_back(steps[i].duration_s);
    window.push_back(steps[i].duration_s);
    const bool last_of_rank = i + 1 == steps.size() || steps[i + 1].rank != steps[i].rank;
    const int64_t number = WindowOf(steps[i].step);
    if (last_of_rank || WindowOf(steps[i + 1].step) != number) {
      std::sort(window.begin(), window.end());
      // Half a window is too few to go by.
      if (window.size() * 2 > kWindowSteps) {
        medians.push_back({.window = number,
                           .rank = steps[i].rank,
                           .median_s = Percentile(window, 0.5).value_or(0)});
      }
      window.clear();
    }
    if (!last_of_rank) continue;
    (*ranks)[steps[i].rank].median_s = UnsortedMedian(std::exchange(all, {})).value_or(0);
  }
  return medians;
}

void CompareWindows(std::vector<WindowMedian> medians, double of_best,
                    std::vector<RankTime>* ranks) {
  std::sort(medians.begin(), medians.end(), [](const WindowMedian& a, const WindowMedian& b) {
    return a.window != b.window ? a.window < b.window : a.median_s < b.median_s;
  });
  for (size_t begin = 0; begin < medians.size();) {
    size_t end = begin;
    while (end < medians.size() && medians[end].window == medians[begin].window) ++end;
    for (size_t i = begin; i < end && end - begin > 1; ++i) {
      RankTime& rank = (*ranks)[medians[i].rank];
      ++rank.windows;
      if (medians[begin].median_s < of_best * medians[i].median_s) ++rank.windows_behind;
    }
    begin = end;
  }
}

}  // namespace

double MedianOfOthers(std::span<const double> sorted, size_t self) {
  const size_t others = sorted.size() - 1;
  const auto at = [&](size_t i) { return sorted[i < self ? i : i + 1]; };
  return others % 2 == 1 ? at(others / 2) : (at(others / 2 - 1) + at(others / 2)) / 2;
}

std::vector<RankTime> CompareRanks(std::vector<RankStep> steps, size_t ranks, double k,
                                   double of_best) {
  std::vector<RankTime> times(ranks);
  const auto by_rank = [](const RankStep& a, const RankStep& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.step < b.step;
  };
  // As ComparableSteps gives them, unless a rank began anew.
  if (!std::is_sorted(steps.begin(), steps.end(), by_rank)) {
    std::sort(steps.begin(), steps.end(), by_rank);
  }
  CompareWindows(WindowMedians(steps, &times), of_best, &times);
  std::vector<Recent> recent(ranks);
  std::sort(steps.begin(), steps.end(), [](const RankStep& a, const RankStep& b) {
    return a.step != b.step ? a.step < b.step : a.duration_s < b.duration_s;
  });
  for (size_t begin = 0; begin < steps.size();) {
    size_t end = begin;
    while (end < steps.size() && steps[end].step == steps[begin].step) ++end;
    if (end - begin > 1) {
      JudgeStep(std::span(steps).subspan(begin, end - begin), k, &recent, &times);
    }
    begin = end;
  }
  return times;
}

std::vector<RankStep> ComparableSteps(const Facts& facts) {
  std::vector<RankStep> steps;
  for (size_t i = 0; i < facts.ranks().size(); ++i) {
    for (const TrainStep& step : facts.ranks()[i].steps) {
      const bool good = !step.warm_up && step.step != model::kNotKnown &&
                        std::isfinite(step.duration_s) && step.duration_s > 0;
      if (good) steps.push_back({.step = step.step, .rank = i, .duration_s = step.duration_s});
    }
  }
  return steps;
}

}  // namespace epochmeter::diagnose
