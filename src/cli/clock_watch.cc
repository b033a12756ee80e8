// SPDX-License-Identifier: Apache-2.0
#include "cli/clock_watch.h"

#include <cstdlib>

#include "model/source_event.h"

namespace epochmeter::cli {
namespace {

int64_t WallOffset(const base::ClockAnchor& clocks) { return clocks.wall_ns - clocks.mono_ns; }
int64_t BootOffset(const base::ClockAnchor& clocks) { return clocks.boot_ns - clocks.mono_ns; }

}  // namespace

void ClockWatch::Look() {
  const base::ClockAnchor now = read_();
  // While the machine sleeps the wall clock goes on as well; only what is beyond that was set.
  const int64_t slept_ns = BootOffset(now) - BootOffset(seen_);
  const int64_t set_ns = WallOffset(now) - WallOffset(seen_) - (slept_ns > kStepNs ? slept_ns : 0);
  const bool moved = std::abs(WallOffset(now) - WallOffset(told_)) > kToleranceNs ||
                     std::abs(BootOffset(now) - BootOffset(told_)) > kToleranceNs;
  if (moved || now.mono_ns - told_.mono_ns >= kAnchorPeriodNs) {
    sink_.Write(model::Anchor{.clocks = now});
    told_ = now;
  }
  const int64_t late_ns = now.mono_ns - NextDueNs();
  if (late_ns > kPausedNs) Tell(now.mono_ns, "recorder.paused", "for_s", late_ns);
  if (slept_ns > kStepNs) Tell(now.mono_ns, "clock.suspended", "for_s", slept_ns);
  if (std::abs(set_ns) > kStepNs) Tell(now.mono_ns, "clock.jumped", "by_s", set_ns);
  seen_ = now;
}

void ClockWatch::Tell(int64_t t_ns, const char* name, const char* field, int64_t ns) {
  sink_.Write(model::SourceEvent(t_ns, name, {{.key = field, .value = base::SecondsFromNs(ns)}}));
}

}  // namespace epochmeter::cli
