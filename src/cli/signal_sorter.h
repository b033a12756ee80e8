// SPDX-License-Identifier: Apache-2.0
// Tells a signal that was sent to the launcher alone, which the training must get, from one that
// was sent to every process of the job (a job manager, kill of a group), which the training has got
// already: then a helper of ours has got it too. Time is monotonic; one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace epochmeter::cli {

class SignalSorter {
 public:
  // So long a helper is given to tell that it got the signal too.
  static constexpr int64_t kHelperTellsNs = 100 * base::kNsPerMs;

  void Received(int signal, pid_t sender, int64_t now_ns);
  void SeenByHelper(int signal, pid_t sender, int64_t now_ns);
  // The signals that are for the training, in the order in which they came.
  std::vector<int> TakeDue(int64_t now_ns);
  // INT64_MAX when none waits.
  int64_t NextDueNs() const;

 private:
  struct Sent {
    int signal = 0;
    pid_t sender = 0;
    int64_t t_ns = 0;
  };
  static bool TakeMatch(std::vector<Sent>& list, const Sent& sent);

  std::vector<Sent> waiting_;  // received, no helper has told of it yet
  std::vector<Sent> told_;     // by a helper, not yet received here
};

}  // namespace epochmeter::cli
