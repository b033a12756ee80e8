// SPDX-License-Identifier: Apache-2.0
#include "cli/predecessor.h"

#include <sys/wait.h>

#include <algorithm>
#include <string>

#include "base/clock.h"
#include "model/source_event.h"

namespace epochmeter::cli {
namespace {

std::string DetailOf(const ControlMessage& replaced) {
  switch (replaced.fault) {
    case HelperFault::kStopped:
      return "it stood still, stopped by a signal, and was ended and replaced";
    case HelperFault::kSilent:
      return "it gave no sign of life, and was ended and replaced";
    case HelperFault::kDied:
      break;
  }
  if (WIFSIGNALED(replaced.wait_status)) {
    return "it was ended by signal " + std::to_string(WTERMSIG(replaced.wait_status)) +
           " and replaced";
  }
  return "it could not run, and was replaced";
}

}  // namespace

void TellReplaced(const ControlMessage& replaced, int64_t now_ns, model::Sink& sink) {
  const bool relay = replaced.helper == HelperKind::kRelay;
  sink.Write(
      model::SourceEvent(now_ns, relay ? "relay" : "recorder",
                         {{.key = "state", .value = std::string("replaced")},
                          {.key = "detail", .value = DetailOf(replaced)},
                          {.key = "away_s", .value = base::SecondsFromNs(replaced.away_ns)}}));
}

uint64_t TakeLostEvents(RecorderWords& words) {
  const uint64_t received = words.events_received;
  const uint64_t kept = words.events_kept;
  words.events_decoded = received;
  words.events_kept = received;
  return received - std::min(kept, received);
}

void TellLostEvents(uint64_t count, int64_t now_ns, model::Sink& sink) {
  sink.Write(model::Loss{.t_ns = now_ns,
                         .severity = model::LossSeverity::kDataLoss,
                         .kind = "recorder.events_lost",
                         .count = count,
                         .detail = "client events, at most, that the recorder before this one had "
                                   "taken and not yet written when it ended",
                         .help = "Find out what ended or stopped it: out of memory, a kill, a "
                                 "stalled disk."});
}

}  // namespace epochmeter::cli
