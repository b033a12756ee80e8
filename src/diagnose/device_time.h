// SPDX-License-Identifier: Apache-2.0
// What a GPU was used for, out of what the ranks on it did.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "diagnose/timeline.h"

namespace epochmeter::diagnose {

// A timeline with the ranks (indexes as given) whose doing each cut is; none where it is nobody's.
struct DeviceTime {
  Timeline timeline;
  std::vector<uint32_t> ranks;  // of all cuts, one after the other
  std::vector<size_t> first;    // of each cut, where its ranks begin; one more for the end

  std::span<const uint32_t> RanksOf(size_t cut) const {
    return std::span(ranks).subspan(first[cut], first[cut + 1] - first[cut]);
  }
};

// Which ranks are on a device, and whether it is known. All their timelines are of one wall time.
struct RanksOnDevice {
  std::vector<uint32_t> ranks;
  bool certain = true;
};

// One rank's time is the device's. Of several the device is productive while any of them is, else
// it evaluates while any of them does, and so on, work before waiting; it is shared out between
// those that do the same then, or to nobody when more than kMostSharing are on it. Where it is not
// certain which of them use it, it has a use only while all of them do the same. Without ranks it
// is kUnused, or kUnknown when that is not certain.
inline constexpr size_t kMostSharing = 64;
DeviceTime TimeOfDevice(const std::vector<RankTimeline>& ranks, const RanksOnDevice& on,
                        model::Interval wall);

}  // namespace epochmeter::diagnose
