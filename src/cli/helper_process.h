// SPDX-License-Identifier: Apache-2.0
// What the launcher's helper processes have in common: how they are restarted and what they keep.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace epochmeter::cli {

// A child that is started again after it dies, later each time.
struct Helper {
  static constexpr int64_t kFirstRestartNs = 50 * base::kNsPerMs;
  static constexpr int64_t kCalmNs = 60 * base::kNsPerSecond;  // alive so long: all is well again

  int64_t longest_restart_ns = 60 * base::kNsPerSecond;
  pid_t pid = -1;
  int64_t restart_at_ns = 0;  // 0: not wanted
  int64_t delay_ns = kFirstRestartNs;
  int64_t started_ns = 0;

  void Starting(int64_t now_ns) {
    started_ns = now_ns;
    restart_at_ns = 0;
  }
  void Died(int64_t now_ns) {
    pid = -1;
    if (now_ns - started_ns > kCalmNs) delay_ns = kFirstRestartNs;
    restart_at_ns = now_ns + delay_ns;
    delay_ns = std::min(2 * delay_ns, longest_restart_ns);
  }
};

// A connected pair of type SOCK_SEQPACKET.
struct SocketPair {
  base::UniqueFd ours, theirs;
};
base::Result<SocketPair> MakeSocketPair();

// Opens /dev/null on each of 0, 1, 2 that is closed, so that no descriptor of ours takes its place.
// They close again when the training is started (O_CLOEXEC), which also tells them apart.
void FillStandardDescriptors();
// In a helper: closes every descriptor above 2 but those in `keep`, so that a helper that hangs in
// a driver or disk call holds no pipe or lock of the caller.
void CloseAllBut(const std::vector<int>& keep);
// Puts /dev/null on `fd`.
void PointToNull(int fd);

}  // namespace epochmeter::cli
