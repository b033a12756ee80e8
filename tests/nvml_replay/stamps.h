// SPDX-License-Identifier: Apache-2.0
// The clock that drivers stamp samples with.
#pragma once

#include <cstdint>

#include "player.h"

namespace nvml_replay {

// The stamp, in us of the scenario's clock, of a moment of play time.
inline int64_t StampOf(const Player& player, int64_t play_ns) {
  const double age_ns = static_cast<double>(player.PlayNs() - play_ns) / player.speed();
  return player.SampleClockMicros() - static_cast<int64_t>(age_ns / 1e3);
}

}  // namespace nvml_replay
