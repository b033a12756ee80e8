// SPDX-License-Identifier: Apache-2.0
#include "diagnose/device_time.h"

#include <algorithm>
#include <array>
#include <set>

namespace epochmeter::diagnose {
namespace {

using model::TimeUse;

// Which use of a device holds when the ranks on it do several things at once.
constexpr std::array<TimeUse, model::kTimeUseCount> kWorkFirst = {
    TimeUse::kProductive, TimeUse::kThrottle,   TimeUse::kRepeated,      TimeUse::kEvaluation,
    TimeUse::kCompile,    TimeUse::kCheckpoint, TimeUse::kCommunication, TimeUse::kDataWait,
    TimeUse::kOther,      TimeUse::kStall,      TimeUse::kIdle,          TimeUse::kStartUp,
    TimeUse::kTearDown,   TimeUse::kUnused,     TimeUse::kUnknown};

// What several ranks do at once.
class Doing {
 public:
  Doing(size_t ranks, bool certain) : now_(ranks, nullptr), certain_(certain) {}

  void Change(size_t rank, const Cut* cut) {
    if (now_[rank] != nullptr) Set(now_[rank]->use).erase(rank);
    now_[rank] = cut;
    Set(cut->use).insert(rank);
  }
  // Those whose use holds; empty where that is not certain.
  const std::set<size_t>& Holders() const {
    for (const TimeUse use : kWorkFirst) {
      const std::set<size_t>& set = by_use_[static_cast<size_t>(use)];
      if (set.empty()) continue;
      if (!certain_ && set.size() < now_.size()) break;
      return set;
    }
    return nobody_;
  }
  const Cut& Now(size_t rank) const { return *now_[rank]; }

 private:
  std::set<size_t>& Set(TimeUse use) { return by_use_[static_cast<size_t>(use)]; }

  std::vector<const Cut*> now_;
  const bool certain_;
  const std::set<size_t> nobody_;
  std::array<std::set<size_t>, model::kTimeUseCount> by_use_;
};

void Append(DeviceTime* time, Cut cut, int64_t begin_ns, std::span<const uint32_t> ranks) {
  cut.begin_ns = begin_ns;
  time->timeline.cuts.push_back(cut);
  time->ranks.insert(time->ranks.end(), ranks.begin(), ranks.end());
  time->first.push_back(time->ranks.size());
}

void Merge(const std::vector<RankTimeline>& ranks, const RanksOnDevice& on, DeviceTime* time) {
  struct Edge {
    int64_t t_ns;
    size_t rank;
    const Cut* cut;
  };
  std::vector<Edge> edges;
  for (size_t i = 0; i < on.ranks.size(); ++i) {
    for (const Cut& cut : ranks[on.ranks[i]].timeline.cuts) {
      edges.push_back({cut.begin_ns, i, &cut});
    }
  }
  std::stable_sort(edges.begin(), edges.end(),
                   [](const Edge& a, const Edge& b) { return a.t_ns < b.t_ns; });
  Doing doing(on.ranks.size(), on.certain);
  std::vector<uint32_t> holders;
  for (size_t i = 0; i < edges.size(); ++i) {
    doing.Change(edges[i].rank, edges[i].cut);
    if (i + 1 < edges.size() && edges[i + 1].t_ns == edges[i].t_ns) continue;
    const std::set<size_t>& who = doing.Holders();
    holders.clear();
    if (on.certain && on.ranks.size() <= kMostSharing) {
      for (const size_t rank : who) holders.push_back(on.ranks[rank]);
    }
    Append(time, who.empty() ? Cut{} : doing.Now(*who.begin()), edges[i].t_ns, holders);
  }
}

}  // namespace

DeviceTime TimeOfDevice(const std::vector<RankTimeline>& ranks, const RanksOnDevice& on,
                        model::Interval wall) {
  DeviceTime time;
  time.first.push_back(0);
  time.timeline.end_ns = wall.end_ns;
  if (on.ranks.empty()) {
    const TimeUse use = on.certain ? TimeUse::kUnused : TimeUse::kUnknown;
    Append(&time, {.use = use}, wall.begin_ns, {});
  } else if (on.ranks.size() == 1) {
    for (const Cut& cut : ranks[on.ranks.front()].timeline.cuts) {
      Append(&time, cut, cut.begin_ns, on.ranks);
    }
  } else {
    Merge(ranks, on, &time);
  }
  return time;
}

}  // namespace epochmeter::diagnose
