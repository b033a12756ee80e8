// SPDX-License-Identifier: Apache-2.0
// Clocks and waiting, in the units of their names.
#pragma once

#include <cstdint>

namespace nvml_replay {

int64_t MonotonicNs();
int64_t WallMicros();
int64_t BoottimeMicros();
void SleepNs(int64_t ns);
// Keeps a core busy, as a call into the driver does.
void SpinNs(int64_t ns);
// Takes so much CPU time of the calling thread, however long that lasts.
void ComputeNs(int64_t ns);

}  // namespace nvml_replay
