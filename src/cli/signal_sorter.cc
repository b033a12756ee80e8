// SPDX-License-Identifier: Apache-2.0
#include "cli/signal_sorter.h"

#include <algorithm>

namespace epochmeter::cli {

bool SignalSorter::TakeMatch(std::vector<Sent>& list, const Sent& sent) {
  const auto match = std::find_if(list.begin(), list.end(), [&sent](const Sent& other) {
    return other.signal == sent.signal && other.sender == sent.sender &&
           std::abs(other.t_ns - sent.t_ns) <= kHelperTellsNs;
  });
  if (match == list.end()) return false;
  list.erase(match);
  return true;
}

void SignalSorter::Received(int signal, pid_t sender, int64_t now_ns) {
  const Sent sent{.signal = signal, .sender = sender, .t_ns = now_ns};
  if (!TakeMatch(told_, sent)) waiting_.push_back(sent);
}

// Each of several helpers may tell of the same signal: what matches nothing is forgotten soon.
void SignalSorter::SeenByHelper(int signal, pid_t sender, int64_t now_ns) {
  const Sent sent{.signal = signal, .sender = sender, .t_ns = now_ns};
  if (!TakeMatch(waiting_, sent)) told_.push_back(sent);
}

std::vector<int> SignalSorter::TakeDue(int64_t now_ns) {
  std::erase_if(told_, [now_ns](const Sent& sent) { return now_ns - sent.t_ns > kHelperTellsNs; });
  std::vector<int> due;
  while (!waiting_.empty() && now_ns - waiting_.front().t_ns >= kHelperTellsNs) {
    due.push_back(waiting_.front().signal);
    waiting_.erase(waiting_.begin());
  }
  return due;
}

int64_t SignalSorter::NextDueNs() const {
  return waiting_.empty() ? INT64_MAX : waiting_.front().t_ns + kHelperTellsNs;
}

}  // namespace epochmeter::cli
