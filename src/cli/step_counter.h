// SPDX-License-Identifier: Apache-2.0
// How many steps a training made between two lines that it printed, and which epoch they are of,
// from the counters on the lines. Not each step is printed, counters begin at 0 or 1 and again with
// each epoch or never, and what began before us was begun elsewhere. Pure; one thread.
#pragma once

#include <cstdint>
#include <optional>

namespace epochmeter::cli {

// What a line prints.
struct PrintedCounters {
  std::optional<int64_t> epoch, in_epoch, step, steps_per_epoch;
  std::optional<int64_t> count() const { return in_epoch ? in_epoch : step; }
};

class StepCounter {
 public:
  struct Move {
    bool forward = true;  // else the line tells again of a step that was told
    bool aside = false;   // or of something else that counts: an evaluation
    bool begins = false;  // the training's first line that we see, or that of a new start
    bool new_epoch = false;
    std::optional<int64_t> epoch;  // of this line; counted by us where lines name none
    int64_t steps = 0;             // since the line before
    // Since the training began, where all of it was seen.
    std::optional<int64_t> total;
    // Of the epoch that this line ends, where it was seen from its first step on.
    std::optional<int64_t> ended_steps;
    // Only now it is clear that all before this line was an epoch: lines name none.
    bool ends_first = false;
  };

  // `start` as in LogRecord.
  Move Next(const PrintedCounters& now, uint32_t start);
  // Of the open epoch, given that it is over: as Move::ended_steps.
  std::optional<int64_t> StepsOfEpoch() const;
  // Whether the open epoch can be over, by its last line.
  bool MayBeOver() const;

 private:
  bool StartsAgain(const PrintedCounters& now, uint32_t start) const;
  bool StartsEpoch(const PrintedCounters& now) const;
  bool Falls(const PrintedCounters& now) const;
  bool StandsAside(const PrintedCounters& now) const;
  void Settle(const PrintedCounters& now, bool begins, bool new_epoch);
  int64_t BeginEpoch(const PrintedCounters& now, bool begins);
  int64_t GoOn(const PrintedCounters& now);

  bool begun_ = false;
  uint32_t start_ = 0;
  std::optional<int64_t> epoch_;
  bool counted_ = false;  // epoch_, by us
  std::optional<int64_t> steps_per_epoch_;
  std::optional<int64_t> count_;  // last printed
  bool in_epoch_ = false;         // it begins again with each epoch
  int64_t first_ = 1;             // what it begins with
  int64_t stride_ = 1;            // between two lines
  int64_t done_ = 0;              // of the epoch, where it is whole
  bool whole_ = false;            // seen from its first step on
  bool unsure_ = false;           // the next line tells whether it is
  bool fell_ = false;             // lines of the epoch began again, and did not come back yet
  int64_t before_ = 0;            // of the epochs before
  bool all_whole_ = true;
};

}  // namespace epochmeter::cli
