// SPDX-License-Identifier: Apache-2.0
#include "cli/event_pace.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace epochmeter::cli {
namespace {

// Less is not worth a timer.
constexpr int64_t kShortestNs = base::kNsPerSecond / 10'000;
// How long bursts are expected to come again.
constexpr int64_t kCrowdedNs = base::kNsPerSecond;
// The newest look counts a fourth of what it was slower.
constexpr int64_t kMemory = 4;

}  // namespace

EventPace::EventPace(int capacity, int64_t longest_ns)
    : capacity_(capacity), longest_ns_(longest_ns) {}

int64_t EventPace::RestAfter(int received, int64_t now_ns) {
  if (received == 0) return 0;
  const int64_t since_ns = now_ns - std::exchange(last_look_ns_, now_ns);
  // However long nothing came: rare is rare. What comes faster counts at once, for the queue is
  // short; what comes slower must do so for a while.
  const int64_t newest_ns = std::min(since_ns / received, longest_ns_);
  if (newest_ns < gap_ns_ || gap_ns_ == 0) {
    gap_ns_ = newest_ns;
  } else {
    gap_ns_ += (newest_ns - gap_ns_) / kMemory;
  }
  if (received * 10 > capacity_ * 6) crowded_until_ns_ = now_ns + kCrowdedNs;
  if (now_ns < crowded_until_ns_) return 0;
  const int64_t rest_ns = std::min(gap_ns_ * capacity_ / 3, longest_ns_);
  // With fewer than two events in it, a rest would add looks instead of saving wake-ups.
  return rest_ns < kShortestNs || rest_ns < 2 * gap_ns_ ? 0 : rest_ns;
}

}  // namespace epochmeter::cli
