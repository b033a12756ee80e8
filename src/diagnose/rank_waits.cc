// SPDX-License-Identifier: Apache-2.0
#include "diagnose/rank_waits.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "diagnose/activity.h"
#include "diagnose/rank_times.h"
#include "diagnose/statistics.h"

namespace epochmeter::diagnose {
namespace {

using model::Interval;

constexpr size_t kFewestSteps = 10;
constexpr size_t kParts = 10;
constexpr double kPersistent = 0.8;  // of the parts
constexpr double kBusy = 0.5;        // utilisation of GPUs that wait inside a collective
// A rank with so much less to do than the others is an imbalance, not a straggler.
constexpr double kSmallerBatch = 0.67;

// A figure of each rank that has it.
struct RankValue {
  size_t rank = 0;
  double value = 0;
};

// Of each rank, the median of all others; in the order of `values`.
std::vector<double> OthersOf(const std::vector<RankValue>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return values[a].value < values[b].value; });
  std::vector<double> sorted;
  sorted.reserve(values.size());
  for (const size_t i : order) sorted.push_back(values[i].value);
  std::vector<double> others(values.size());
  for (size_t place = 0; place < order.size(); ++place) {
    others[order[place]] = MedianOfOthers(sorted, place);
  }
  return others;
}

std::vector<RankValue> DataWaits(const Facts& facts) {
  std::vector<RankValue> values;
  for (size_t i = 0; i < facts.ranks().size(); ++i) {
    const std::optional<double> ratio = DataWaitRatio(facts.ranks()[i]);
    if (ratio) values.push_back({.rank = i, .value = *ratio});
  }
  return values;
}

// Share of the steady time in phases named comm; only when every rank tells them.
std::vector<RankValue> CommShares(const Facts& facts) {
  std::vector<RankValue> values;
  for (size_t i = 0; i < facts.ranks().size(); ++i) {
    const RankFacts& rank = facts.ranks()[i];
    const std::vector<Interval> comm = PhasesNamed(rank, {"comm"});
    const std::vector<Interval> steady = SteadySpans(rank);
    const double steady_s = TotalSeconds(steady);
    if (comm.empty() || steady_s <= 0) return {};
    values.push_back({.rank = i, .value = TotalSeconds(Overlap(steady, comm)) / steady_s});
  }
  return values;
}

std::vector<RankValue> Means(const Facts& facts, const std::vector<RankGpus>& ranks,
                             std::string_view field, std::span<const Interval> intervals) {
  std::vector<RankValue> values;
  for (const RankGpus& rank : ranks) {
    const std::optional<double> mean = MeanOver(facts, rank.gpus, field, intervals);
    if (mean) values.push_back({.rank = rank.rank, .value = *mean});
  }
  return values;
}

// In how many parts of the time each rank's GPUs were clearly idler than the busy ones of others.
struct Persistence {
  size_t parts = 0, idler = 0;
  bool at_start = false;
};
std::map<size_t, Persistence> IdlerParts(const Facts& facts, const std::vector<RankGpus>& ranks,
                                         std::span<const Interval> steady, double least) {
  std::map<size_t, Persistence> found;
  for (const std::vector<Interval>& part : Parts(steady, kParts)) {
    const std::vector<RankValue> values = Means(facts, ranks, "utilization_ratio", part);
    if (values.size() < 2) continue;
    const std::vector<double> others = OthersOf(values);
    for (size_t i = 0; i < values.size(); ++i) {
      Persistence& rank = found[values[i].rank];
      const bool idler = others[i] >= kBusy && others[i] - values[i].value >= least / 2;
      if (rank.parts++ == 0) rank.at_start = idler;
      rank.idler += idler ? 1 : 0;
    }
  }
  return found;
}

bool HasSmallerBatch(const std::vector<RankValue>& batches, const std::vector<double>& others,
                     size_t rank) {
  for (size_t i = 0; i < batches.size(); ++i) {
    if (batches[i].rank == rank) return batches[i].value < kSmallerBatch * others[i];
  }
  return false;
}

// Ranks that wait keep their GPU busy with little power for it: with the same power at very
// different utilisation, the difference is waiting and not work. With clearly less of both a rank
// has less to do, and nobody waits for it: an imbalance.
bool DrawsTheSame(const std::vector<RankValue>& powers, const std::vector<double>& others,
                  size_t rank) {
  for (size_t i = 0; i < powers.size(); ++i) {
    if (powers[i].rank == rank) return powers[i].value > 0.8 * others[i];
  }
  return false;
}

std::vector<HeldUpBy> ByUtilization(const Facts& facts, double least) {
  const std::vector<RankGpus> ranks = RanksWithOwnGpus(facts);
  const std::vector<Interval> steady = SteadyOfAll(facts);
  const std::vector<RankValue> values = Means(facts, ranks, "utilization_ratio", steady);
  if (values.size() < 2) return {};
  const std::vector<double> others = OthersOf(values);
  std::vector<RankValue> batches;
  for (const RankGpus& rank : ranks) {
    const std::optional<double> batch = MeanBatch(facts.ranks()[rank.rank]);
    if (batch) batches.push_back({.rank = rank.rank, .value = *batch});
  }
  const std::vector<double> other_batches =
      batches.size() > 1 ? OthersOf(batches) : std::vector<double>(batches.size(), 0);
  const std::vector<RankValue> powers = Means(facts, ranks, "power_w", steady);
  const std::vector<double> other_powers =
      powers.size() > 1 ? OthersOf(powers) : std::vector<double>(powers.size(), 0);
  const auto persistence = IdlerParts(facts, ranks, steady, least);
  std::vector<HeldUpBy> found;
  for (size_t i = 0; i < values.size(); ++i) {
    const double gap = others[i] - values[i].value;
    if (others[i] < kBusy || gap < least) continue;
    if (HasSmallerBatch(batches, other_batches, values[i].rank)) continue;
    const auto seen = persistence.find(values[i].rank);
    if (seen == persistence.end() || static_cast<double>(seen->second.idler) <
                                         kPersistent * static_cast<double>(seen->second.parts)) {
      continue;
    }
    const bool told = powers.size() > 1;
    if (told && !DrawsTheSame(powers, other_powers, values[i].rank)) continue;
    found.push_back({.rank = values[i].rank,
                     .sign = WaitSign::kUtilization,
                     .own = values[i].value,
                     .others = others[i],
                     .held_ratio = std::min(1.0, gap),
                     .confidence = told ? 0.95 : 0.75,
                     .since_start = seen->second.at_start});
  }
  return found;
}

// `sign` says for which figure; a culprit has more of its own data wait, less of communication.
std::vector<HeldUpBy> ByShares(const std::vector<RankValue>& values, WaitSign sign, double least) {
  std::vector<HeldUpBy> found;
  if (values.size() < 2) return found;
  const std::vector<double> others = OthersOf(values);
  for (size_t i = 0; i < values.size(); ++i) {
    const double gap =
        sign == WaitSign::kDataWait ? values[i].value - others[i] : others[i] - values[i].value;
    if (gap < least) continue;
    found.push_back({.rank = values[i].rank,
                     .sign = sign,
                     .own = values[i].value,
                     .others = others[i],
                     .held_ratio = std::min(1.0, gap),
                     .confidence = 0.9,
                     .since_start = true});
  }
  return found;
}

}  // namespace

std::vector<RankGpus> RanksWithOwnGpus(const Facts& facts) {
  std::map<int32_t, size_t> users;
  for (const RankFacts& rank : facts.ranks()) {
    for (const int32_t gpu : rank.gpus) ++users[gpu];
  }
  std::vector<RankGpus> found;
  for (size_t i = 0; i < facts.ranks().size(); ++i) {
    RankGpus own{.rank = i, .gpus = {}};
    for (const int32_t gpu : facts.ranks()[i].gpus) {
      if (users[gpu] == 1) own.gpus.push_back(gpu);
    }
    if (!own.gpus.empty()) found.push_back(std::move(own));
  }
  return found;
}

bool StepTogether(const Facts& facts) {
  std::vector<double> medians;
  for (const RankFacts& rank : facts.ranks()) {
    if (rank.steps.size() < kFewestSteps) continue;
    const std::optional<double> median = MedianStepSeconds(rank);
    if (median) medians.push_back(*median);
  }
  if (medians.size() < 2) return false;
  std::sort(medians.begin(), medians.end());
  const bool many = medians.size() >= 20;
  const double low = many ? *Percentile(medians, 0.05) : medians.front();
  const double high = many ? *Percentile(medians, 0.95) : medians.back();
  return low >= 0.9 * high;
}

std::vector<HeldUpBy> FindHeldUpBy(const Facts& facts, double least) {
  std::vector<HeldUpBy> found = ByShares(DataWaits(facts), WaitSign::kDataWait, least);
  if (found.empty()) found = ByShares(CommShares(facts), WaitSign::kComm, least);
  if (found.empty()) found = ByUtilization(facts, least);
  std::stable_sort(found.begin(), found.end(), [](const HeldUpBy& a, const HeldUpBy& b) {
    return a.held_ratio > b.held_ratio;
  });
  return found;
}

bool CanTellWaits(const Facts& facts) {
  if (DataWaits(facts).size() > 1 || CommShares(facts).size() > 1) return true;
  const std::vector<Interval> steady = SteadyOfAll(facts);
  return Means(facts, RanksWithOwnGpus(facts), "utilization_ratio", steady).size() > 1;
}

}  // namespace epochmeter::diagnose
