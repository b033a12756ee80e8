// SPDX-License-Identifier: Apache-2.0
// The relay process: passes the training's output on unchanged and gives the recorder a copy.
//
// Output first: a copy that finds the recorder's buffer full is dropped and counted. It does
// nothing else, so that a dead or stopped recorder never holds the training's output. The launcher
// does its work while there is no relay.
#pragma once

#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "cli/stream_mover.h"

namespace epochmeter::cli {

struct RelayChannels {
  int capture = -1;  // copies go here, never blocking
  int control = -1;  // to the launcher; end of file: the training ended
};

inline constexpr const char* kRelayName = "epm-relay";
// Exit codes of a relay.
inline constexpr int kRelayAllPassedOn = 0;
inline constexpr int kRelayCannotRun = 1;

// Runs until every `from` is at its end; the exit code for the process. `journals`: one for each
// stream. A destination that is gone makes the source be closed, so that the writer learns what it
// would have learnt without us. kRelayCannotRun when a thread can't be had.
int RunRelay(const std::vector<RelayStream>& streams, WriteJournal* journals,
             RelayChannels channels);

// Puts the size of the terminal behind each stream on the training's.
void CopyWindowSizes(const std::vector<RelayStream>& streams);

// How the training's stdout and stderr are led through the relay. Owns all descriptors but the
// destinations.
struct OutputPlan {
  std::vector<RelayStream> streams;
  std::vector<base::UniqueFd> sources;        // sources[i] is streams[i].from
  std::vector<base::UniqueFd> pipes;          // those of `hand` and `copy`
  base::UniqueFd child_stdout, child_stderr;  // for the training; invalid: keeps ours
};
inline constexpr size_t kMostStreams = 2;
// Ptys for terminals, pipes for the rest; one channel for both when they are the same open file, so
// that their order is kept.
base::Result<OutputPlan> PlanOutput();

}  // namespace epochmeter::cli
