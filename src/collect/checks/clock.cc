// SPDX-License-Identifier: Apache-2.0
// Samples are ordered by the monotonic clock, so its cost counts; nodes are compared by wall time,
// so its synchronisation counts.
#include <sys/timex.h>

#include <array>

#include "base/clock.h"
#include "base/json_writer.h"
#include "collect/checks/check_list.h"
#include "collect/checks/look.h"

namespace epochmeter::collect {
namespace {

constexpr int64_t kDearNs = 500;

int64_t CostOfReadingNs() {
  constexpr int kReads = 2000;
  const int64_t begin_ns = base::MonotonicNs();
  for (int i = 0; i < kReads; ++i) base::MonotonicNs();
  return (base::MonotonicNs() - begin_ns) / kReads;
}

model::CheckFact Cost(const CheckContext& context) {
  const std::string source =
      ReadTrimmed(context.Path("/sys/devices/system/clocksource/clocksource0/current_clocksource"))
          .value_or("unknown");
  const int64_t cost_ns = CostOfReadingNs();
  const std::string why =
      "clock source " + source + ", " + std::to_string(cost_ns) + " ns a reading";
  if (cost_ns < kDearNs) return Ok("the clock is cheap to read", why);
  return Limited("the clock is dear to read", why + ": each reading enters the kernel",
                 "use clock source tsc (or kvm-clock, hyperv_clocksource_tsc_page in a guest); see "
                 "why it was rejected in `dmesg | grep -i tsc`");
}

model::CheckFact Synchronised() {
  timex state{};
  const int code = ::adjtimex(&state);
  if (code >= 0 && (state.status & STA_UNSYNC) == 0 && code != TIME_ERROR) {
    return Ok("the wall clock is synchronised");
  }
  return Info("the wall clock is not known to be synchronised",
              "the kernel says so; runs of several nodes are laid side by side by wall time",
              "for several nodes run chrony or systemd-timesyncd; one node needs nothing");
}

model::CheckFacts Run(const CheckContext& context) { return {Cost(context), Synchronised()}; }

}  // namespace

const CheckDef kClockCheck = {.id = "host.clock", .summary = "clock and time", .Run = Run};

}  // namespace epochmeter::collect
