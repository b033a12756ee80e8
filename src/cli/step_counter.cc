// SPDX-License-Identifier: Apache-2.0
#include "cli/step_counter.h"

#include <algorithm>
#include <utility>

namespace epochmeter::cli {

bool StepCounter::Falls(const PrintedCounters& now) const {
  return now.count() && count_ && now.in_epoch.has_value() == in_epoch_ && *now.count() < *count_;
}

bool StepCounter::StartsAgain(const PrintedCounters& now, uint32_t start) const {
  if (start != start_) return true;
  if (now.epoch) return epoch_ && !counted_ && *now.epoch < *epoch_;
  return !now.in_epoch && Falls(now);
}

bool StepCounter::StartsEpoch(const PrintedCounters& now) const {
  if (now.epoch) return !epoch_ || counted_ || *now.epoch != *epoch_;
  // Lines that first seemed to count on over epochs turn out to count within them.
  const bool turned = now.in_epoch && !in_epoch_ && count_ && !epoch_ && *now.in_epoch <= *count_;
  return turned || (now.in_epoch && Falls(now));
}

// Within an epoch: no step that was not told before. An evaluation may have more steps than it.
bool StepCounter::StandsAside(const PrintedCounters& now) const {
  if (!count_ || now.in_epoch.has_value() != in_epoch_) return false;
  return now.count().value_or(*count_) <= *count_ ||
         (fell_ && now.steps_per_epoch != steps_per_epoch_);
}

std::optional<int64_t> StepCounter::StepsOfEpoch() const {
  if (!whole_ || !count_) return {};
  const bool rest_unprinted = in_epoch_ && steps_per_epoch_ && *steps_per_epoch_ > done_ &&
                              *steps_per_epoch_ - done_ < stride_;
  return rest_unprinted ? *steps_per_epoch_ : done_;
}

bool StepCounter::MayBeOver() const {
  return !in_epoch_ || !steps_per_epoch_ ||
         *steps_per_epoch_ - done_ < std::max<int64_t>(stride_, 1);
}

// Whether the first line's epoch began with us is clear from the distance to the second line.
void StepCounter::Settle(const PrintedCounters& now, bool begins, bool new_epoch) {
  if (!std::exchange(unsure_, false) || begins) return;
  if (new_epoch) {
    whole_ = now.in_epoch && now.count() == count_;
  } else if (now.count() && now.in_epoch.has_value() == in_epoch_) {
    whole_ = done_ <= *now.count() - *count_;
  }
}

int64_t StepCounter::BeginEpoch(const PrintedCounters& now, bool begins) {
  steps_per_epoch_ = now.steps_per_epoch;
  if (!now.count()) {
    whole_ = false;
    return 0;
  }
  const int64_t count = *now.count();
  if (begins) first_ = 1;
  if (count == 0) first_ = 0;
  const bool goes_on = !begins && !now.in_epoch && count_ && !in_epoch_;
  done_ = goes_on ? count - *count_ : count + 1 - first_;
  whole_ = !begins || done_ <= 1 || (now.in_epoch && now.steps_per_epoch == done_);
  unsure_ = !whole_;
  return whole_ ? std::max<int64_t>(done_, 1) : 1;
}

int64_t StepCounter::GoOn(const PrintedCounters& now) {
  if (now.steps_per_epoch) steps_per_epoch_ = now.steps_per_epoch;
  if (!now.count()) return 0;
  const bool same = count_ && now.in_epoch.has_value() == in_epoch_;
  const int64_t steps = same ? *now.count() - *count_ : 1;
  if (same) stride_ = steps;
  done_ += steps;
  return steps;
}

StepCounter::Move StepCounter::Next(const PrintedCounters& now, uint32_t start) {
  Move move;
  move.begins = !begun_ || StartsAgain(now, start);
  move.new_epoch = move.begins || StartsEpoch(now);
  if (!move.new_epoch) {
    fell_ = fell_ || Falls(now);
    if (StandsAside(now)) return {.forward = false, .aside = fell_, .epoch = epoch_};
  }
  fell_ = false;
  Settle(now, move.begins, move.new_epoch);
  if (move.new_epoch && begun_) {
    move.ended_steps = StepsOfEpoch();
    move.ends_first = !move.begins && !epoch_ && !now.epoch && count_.has_value();
    all_whole_ = all_whole_ && whole_;
    before_ += move.ended_steps.value_or(0);
  }
  if (move.begins) {
    before_ = 0;
    all_whole_ = true;
    stride_ = 1;
  }
  if (move.new_epoch) {
    counted_ = !now.epoch;
    if (now.epoch) {
      epoch_ = now.epoch;
    } else if (move.begins) {
      epoch_ = now.in_epoch ? std::optional<int64_t>(1) : std::nullopt;
    } else {
      epoch_ = epoch_.value_or(1) + 1;
    }
  }
  move.steps = move.new_epoch ? BeginEpoch(now, move.begins) : GoOn(now);
  move.epoch = epoch_;
  if (now.count()) count_ = now.count();
  in_epoch_ = now.in_epoch.has_value();
  if (whole_ && all_whole_) move.total = before_ + done_;
  begun_ = true;
  start_ = start;
  return move;
}

}  // namespace epochmeter::cli
