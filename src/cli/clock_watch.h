// SPDX-License-Identifier: Apache-2.0
// Watches the wall clock and the clock that counts suspend against CLOCK_MONOTONIC, so that the run
// says what became of them: an anchor whenever wall times would else be wrong, an event when the
// wall clock was set and when the machine slept. One thread.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "model/sink.h"

namespace epochmeter::cli {

class ClockWatch {
 public:
  // How far off wall times of the run may be.
  static constexpr int64_t kToleranceNs = 10 * base::kNsPerMs;
  // A change of this much between two looks is a step; less is a clock that is slewed or smeared,
  // at most some thousand ppm.
  static constexpr int64_t kStepNs = 100 * base::kNsPerMs;

  // A look that comes so late was late because the recorder did not run: its job was stopped.
  static constexpr int64_t kPausedNs = 2 * base::kNsPerSecond;

  // Borrows the sink. `first` are the clocks as the run, or what is resumed of it, has them;
  // `read` is replaced by tests.
  ClockWatch(model::Sink& sink, const base::ClockAnchor& first,
             base::ClockAnchor (*read)() = &base::ReadClockAnchor)
      : sink_(sink), read_(read), told_(first), seen_(first) {}

  // A look that is a little early joins the tick that woke the recorder.
  int64_t NextDueNs() const { return seen_.mono_ns + 3 * kPeriodNs / 2; }
  void Maintain(int64_t now_ns) {
    if (now_ns - seen_.mono_ns >= kPeriodNs) Look();
  }
  // Reads the clocks now: the last word of a run.
  void Look();

 private:
  static constexpr int64_t kPeriodNs = 9 * base::kNsPerSecond / 10;
  static constexpr int64_t kAnchorPeriodNs = 300 * base::kNsPerSecond;

  void Tell(int64_t t_ns, const char* name, const char* field, int64_t ns);

  model::Sink& sink_;
  base::ClockAnchor (*read_)();
  base::ClockAnchor told_;  // the last anchor of the run
  base::ClockAnchor seen_;  // the last look
};

}  // namespace epochmeter::cli
