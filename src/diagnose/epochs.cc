// SPDX-License-Identifier: Apache-2.0
#include "diagnose/epochs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace epochmeter::diagnose {
namespace {

using model::EpochRow;
using model::Event;
using model::EventKind;
using model::StepTable;

int64_t NsFromSeconds(double seconds) { return std::llround(seconds * 1e9); }

// Seconds that a duration may plausibly have; a wild one must not move a begin before the clock.
std::optional<int64_t> DurationNs(std::optional<double> seconds) {
  if (!seconds || !(*seconds >= 0) || *seconds > 1e8) return {};
  return NsFromSeconds(*seconds);
}

// When the `index`th step began; its end when its duration is not known.
int64_t StepBegin(const StepTable& steps, size_t index) {
  for (const char* name : {"duration_s", "epoch_s"}) {
    const std::vector<double>* column = steps.Column(name);
    if (column == nullptr || model::IsAbsent((*column)[index])) continue;
    return steps.t_ns[index] - DurationNs((*column)[index]).value_or(0);
  }
  return steps.t_ns[index];
}

// Everything that was seen of a rank, as rising instants.
std::vector<int64_t> SeenInstants(const RankEvents& rank) {
  std::vector<int64_t> seen;
  for (const Event* event : rank.events) seen.push_back(event->t_ns);
  if (rank.steps != nullptr) {
    seen.insert(seen.end(), rank.steps->t_ns.begin(), rank.steps->t_ns.end());
  }
  std::sort(seen.begin(), seen.end());
  return seen;
}

class EventEpochs {
 public:
  explicit EventEpochs(const RankEvents& rank) : rank_(rank), seen_(SeenInstants(rank)) {}

  std::vector<EpochRow> Find() {
    for (const Event* event : rank_.events) {
      if (event->kind == EventKind::kEpochBegin) {
        CloseIncomplete(event->t_ns);
        open_ = Row(*event);
      } else if (event->kind == EventKind::kEpochEnd) {
        OnEnd(*event);
      } else if (event->kind == EventKind::kTrainBegin) {
        CloseIncomplete(event->t_ns);
      }
    }
    if (open_) Close(seen_.back(), false);
    return std::move(rows_);
  }

 private:
  EpochRow Row(const Event& event) const {
    EpochRow row;
    row.rank = rank_.rank;
    row.pid = rank_.pid;
    row.epoch = event.epoch.value_or(model::kNoEpoch);
    row.begin_ns = event.t_ns;
    return row;
  }

  void Close(int64_t end_ns, bool complete) {
    open_->end_ns = std::max(end_ns, open_->begin_ns);
    open_->complete = complete;
    rows_.push_back(*open_);
    open_.reset();
    end_seen_ = false;
  }

  void CloseWith(const Event& end) {
    Close(end.t_ns, !(end.Number("partial").value_or(0) > 0));
    end_seen_ = true;
  }

  // Ends the open epoch, whose end never came, at the last thing seen before `t_ns`.
  void CloseIncomplete(int64_t t_ns) {
    if (!open_) return;
    const auto after = std::lower_bound(seen_.begin(), seen_.end(), t_ns);
    Close(after == seen_.begin() ? t_ns : *std::prev(after), false);
  }

  void OnEnd(const Event& event) {
    const int64_t epoch = event.epoch.value_or(open_ ? open_->epoch : model::kNoEpoch);
    if (open_ && open_->epoch == epoch) {
      CloseWith(event);
      return;
    }
    CloseIncomplete(event.t_ns);
    const bool repeated = !rows_.empty() && end_seen_ && rows_.back().epoch == epoch;
    if (repeated) return;
    open_ = Row(event);
    open_->begin_ns = LostBegin(event);
    CloseWith(event);
  }

  // The begin of an epoch of which only the end came: by its duration, else the first thing seen
  // after the row before.
  int64_t LostBegin(const Event& end) const {
    if (const auto duration = DurationNs(end.Number("duration_s"))) return end.t_ns - *duration;
    if (rows_.empty()) return std::min(seen_.front(), end.t_ns);
    const auto after = std::upper_bound(seen_.begin(), seen_.end(), rows_.back().end_ns);
    return after == seen_.end() ? end.t_ns : std::min(*after, end.t_ns);
  }

  const RankEvents& rank_;
  std::vector<int64_t> seen_;
  std::optional<EpochRow> open_;
  std::vector<EpochRow> rows_;
  bool end_seen_ = false;  // of the last row
};

std::optional<int64_t> FirstOf(const RankEvents& rank, EventKind kind) {
  for (const Event* event : rank.events) {
    if (event->kind == kind) return event->t_ns;
  }
  return {};
}

// Whether step `index` starts a new epoch beside the row that is open: another number, or the
// step counter fell (a restart).
bool StartsEpoch(const StepTable& steps, size_t index, size_t previous, int64_t open_epoch) {
  const int64_t epoch = steps.epoch[index];
  if (epoch != model::kNotKnown && epoch != open_epoch) return true;
  return steps.step[index] != model::kNotKnown && steps.step[index] <= steps.step[previous];
}

std::vector<EpochRow> StepEpochs(const RankEvents& rank) {
  const StepTable& steps = *rank.steps;
  const std::vector<double>* ends = steps.Column("ends_epoch");
  const auto at_end = [ends](size_t index) { return ends != nullptr && (*ends)[index] > 0; };
  const std::vector<size_t> order = StepOrder(steps);
  std::vector<EpochRow> rows;
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t at = order[i];
    if (rows.empty() || StartsEpoch(steps, at, order[i - 1], rows.back().epoch)) {
      if (!rows.empty()) {
        const size_t last = order[i - 1];
        const bool anew = model::AnyBetween(
            rank.events, steps.t_ns[last], steps.t_ns[at],
            [](const Event& event) { return event.kind == EventKind::kTrainBegin; });
        rows.back().complete = at_end(last) || !anew;
      }
      EpochRow row;
      row.rank = rank.rank;
      row.pid = rank.pid;
      row.epoch = steps.epoch[at];
      row.begin_ns = StepBegin(steps, at);
      if (!rows.empty()) row.begin_ns = std::max(row.begin_ns, rows.back().end_ns);
      rows.push_back(row);
    }
    rows.back().end_ns = steps.t_ns[at];
  }
  const std::optional<int64_t> train_end = FirstOf(rank, EventKind::kTrainEnd);
  if (!rows.empty() && at_end(order.back())) rows.back().complete = true;
  if (!rows.empty() && train_end && *train_end >= rows.back().end_ns) rows.back().complete = true;
  return rows;
}

}  // namespace

std::vector<EpochRow> FindEpochs(const RankEvents& rank) {
  const bool has_events =
      FirstOf(rank, EventKind::kEpochBegin) || FirstOf(rank, EventKind::kEpochEnd);
  std::vector<EpochRow> rows;
  if (has_events) {
    rows = EventEpochs(rank).Find();
  } else if (rank.steps != nullptr) {
    rows = StepEpochs(rank);
  }
  for (EpochRow& row : rows) {
    // Steps at one instant: how long they took is not known.
    if (!has_events && row.end_ns == row.begin_ns) continue;
    row.duration_s = base::SecondsFromNs(row.end_ns - row.begin_ns);
  }
  return rows;
}

}  // namespace epochmeter::diagnose
