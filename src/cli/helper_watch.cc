// SPDX-License-Identifier: Apache-2.0
#include "cli/helper_watch.h"

#include <algorithm>
#include <csignal>

namespace epochmeter::cli {
namespace {
// A loaded machine wakes a waiter later than asked.
constexpr int64_t kLateNs = base::kNsPerSecond;
}  // namespace

void AwakeClock::Waited(int64_t waited_ns, int64_t asked_ns) {
  // What a wait without end lasted says nothing, and in one that came back late we were stopped.
  if (asked_ns >= 0 && waited_ns <= asked_ns + kLateNs) now_ns_ += std::min(waited_ns, asked_ns);
}

void HelperWatch::Started(pid_t pid, int64_t now_ns, int64_t awake_ns) {
  started_ns_ = now_ns;
  fault_ = pid > 0 ? HelperFault::kDied : fault_;
  restart_at_ns_ = 0;
  stopped_since_ns_ = 0;
  ending_ = false;
  pid_ = -1;
  beat_ns_ = 0;
  beat_seen_ns_ = now_ns;
  beat_awake_ns_ = awake_ns;
  if (pid > 0) {
    pid_ = pid;
    away_since_ns_ = 0;
  } else {
    if (away_since_ns_ == 0) away_since_ns_ = now_ns;
    restart_at_ns_ = now_ns + delay_ns_;
    delay_ns_ = std::min(2 * delay_ns_, longest_restart_ns_);
  }
}

void HelperWatch::Died(int wait_status, int64_t now_ns) {
  pid_ = -1;
  wait_status_ = wait_status;
  if (!ending_) fault_ = HelperFault::kDied;
  if (away_since_ns_ == 0) away_since_ns_ = now_ns;
  if (now_ns - started_ns_ > kCalmNs) delay_ns_ = kFirstRestartNs;
  restart_at_ns_ = now_ns + delay_ns_;
  delay_ns_ = std::min(2 * delay_ns_, longest_restart_ns_);
}

void HelperWatch::Stopped(int64_t now_ns, int64_t awake_ns) {
  stopped_since_ns_ = now_ns;
  stopped_awake_ns_ = awake_ns;
}

void HelperWatch::RestartNow(int64_t now_ns) {
  if (waits_for_restart()) restart_at_ns_ = now_ns;
}

void HelperWatch::EndIfFaulty(int64_t now_ns, int64_t awake_ns, int64_t beat_ns,
                              int64_t longest_silence_ns) {
  if (!alive() || ending_) return;
  if (stopped() && awake_ns - stopped_awake_ns_ >= kStoppedGraceNs) {
    End(HelperFault::kStopped, stopped_since_ns_);
    return;
  }
  if (longest_silence_ns == 0 || beat_ns != beat_ns_ || stopped()) {
    beat_ns_ = beat_ns;
    beat_seen_ns_ = now_ns;
    beat_awake_ns_ = awake_ns;
  } else if (awake_ns - beat_awake_ns_ >= longest_silence_ns) {
    End(HelperFault::kSilent, beat_seen_ns_);
  }
}

void HelperWatch::End(HelperFault fault, int64_t since_ns) {
  if (!alive() || ending_) return;
  ending_ = true;
  fault_ = fault;
  away_since_ns_ = since_ns;
  ::kill(pid_, SIGKILL);
}

int64_t HelperWatch::WaitNs(int64_t now_ns, int64_t awake_ns) const {
  if (waits_for_restart()) return std::max<int64_t>(0, restart_at_ns_ - now_ns);
  if (!alive() || ending_ || !stopped()) return INT64_MAX;
  return std::max<int64_t>(0, stopped_awake_ns_ + kStoppedGraceNs - awake_ns);
}

std::optional<ControlMessage> HelperWatch::Replacement(int64_t now_ns) const {
  if (away_since_ns_ == 0) return std::nullopt;
  return ControlMessage{.kind = ControlMessage::Kind::kHelperReplaced,
                        .pid = 0,
                        .wait_status = wait_status_,
                        .away_ns = now_ns - away_since_ns_,
                        .helper = kind_,
                        .fault = fault_};
}

}  // namespace epochmeter::cli
