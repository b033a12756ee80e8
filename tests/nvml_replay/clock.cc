// SPDX-License-Identifier: Apache-2.0
#include "clock.h"

#include <time.h>

namespace nvml_replay {
namespace {

int64_t ClockNs(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

}  // namespace

int64_t MonotonicNs() { return ClockNs(CLOCK_MONOTONIC); }
int64_t WallMicros() { return ClockNs(CLOCK_REALTIME) / 1000; }
int64_t BoottimeMicros() { return ClockNs(CLOCK_BOOTTIME) / 1000; }

void SleepNs(int64_t ns) {
  timespec left{static_cast<time_t>(ns / 1000000000), static_cast<long>(ns % 1000000000)};
  while (nanosleep(&left, &left) != 0) {
  }
}

void SpinNs(int64_t ns) {
  const int64_t end_ns = MonotonicNs() + ns;
  while (MonotonicNs() < end_ns) {
  }
}

void ComputeNs(int64_t ns) {
  const int64_t end_ns = ClockNs(CLOCK_THREAD_CPUTIME_ID) + ns;
  while (ClockNs(CLOCK_THREAD_CPUTIME_ID) < end_ns) {
  }
}

}  // namespace nvml_replay
