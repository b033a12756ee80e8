// SPDX-License-Identifier: Apache-2.0
// One helper of the launcher: when it is started again after a death, and when one that stands
// still is ended. Times are monotonic; "awake" times leave out what this process itself did not
// run, so that a job that was suspended as a whole and goes on is not taken for a fault.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "cli/messages.h"

namespace epochmeter::cli {

// Sums up the waits of a loop that lasted no longer than asked for.
class AwakeClock {
 public:
  // After a wait that was to last at most `asked_ns` (negative: any length).
  void Waited(int64_t waited_ns, int64_t asked_ns);
  int64_t now_ns() const { return now_ns_; }

 private:
  int64_t now_ns_ = 1;
};

class HelperWatch {
 public:
  static constexpr int64_t kFirstRestartNs = 50 * base::kNsPerMs;
  static constexpr int64_t kCalmNs = 60 * base::kNsPerSecond;  // alive so long: all is well again
  // A stop of the whole job stops the launcher too, within this time.
  static constexpr int64_t kStoppedGraceNs = base::kNsPerSecond;

  HelperWatch(HelperKind kind, int64_t longest_restart_ns)
      : kind_(kind), longest_restart_ns_(longest_restart_ns) {}

  pid_t pid() const { return pid_; }
  bool alive() const { return pid_ > 0; }
  // Wanted, but not there.
  bool waits_for_restart() const { return restart_at_ns_ != 0; }

  // After a fork: `pid` of the child, or negative when there is none; then it is tried again later.
  void Started(pid_t pid, int64_t now_ns, int64_t awake_ns);
  // Of waitpid. `now_ns` and `awake_ns` are two readings of one moment.
  void Died(int wait_status, int64_t now_ns);
  void Stopped(int64_t now_ns, int64_t awake_ns);
  void Continued() { stopped_since_ns_ = 0; }
  // It is not started again.
  void Retire() { restart_at_ns_ = 0; }
  void RestartNow(int64_t now_ns);
  bool RestartIsDue(int64_t now_ns) const {
    return waits_for_restart() && restart_at_ns_ <= now_ns;
  }

  // Ends the helper by SIGKILL when it has stood still for too long, or has given no sign of life
  // (`beat_ns`, any changing number) for `longest_silence_ns`; 0: none is asked for.
  void EndIfFaulty(int64_t now_ns, int64_t awake_ns, int64_t beat_ns, int64_t longest_silence_ns);
  // Ends it by SIGKILL; the cause is told of the next one.
  void End(HelperFault fault, int64_t since_ns);
  bool stopped() const { return stopped_since_ns_ != 0; }

  // How long until EndIfFaulty or a restart is due; INT64_MAX: not before something happens.
  int64_t WaitNs(int64_t now_ns, int64_t awake_ns) const;
  // What is to be told of the one before, if another is started now; until one has started.
  std::optional<ControlMessage> Replacement(int64_t now_ns) const;

 private:
  const HelperKind kind_;
  const int64_t longest_restart_ns_;
  pid_t pid_ = -1;
  int64_t started_ns_ = 0;
  int64_t restart_at_ns_ = 0;  // 0: not wanted
  int64_t delay_ns_ = kFirstRestartNs;
  int64_t stopped_since_ns_ = 0, stopped_awake_ns_ = 0;  // 0: it runs
  int64_t beat_ns_ = 0, beat_seen_ns_ = 0, beat_awake_ns_ = 0;
  bool ending_ = false;  // killed by us, not yet reaped
  HelperFault fault_ = HelperFault::kDied;
  int64_t away_since_ns_ = 0;  // 0: nothing to tell
  int wait_status_ = 0;
};

}  // namespace epochmeter::cli
