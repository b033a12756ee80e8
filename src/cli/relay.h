// SPDX-License-Identifier: Apache-2.0
// The relay process: passes the training's output on unchanged and gives the recorder a copy.
//
// Output first: a copy that finds the recorder's buffer full is dropped and counted. It does
// nothing else, so that a dead or stopped recorder never holds the training's output.
#pragma once

#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace epochmeter::cli {

// One stream: `from` is read, `to` gets every byte. `stream` as in model::LogText.
struct RelayStream {
  int from = -1;
  int to = -1;
  unsigned stream = 1;
};

struct RelayChannels {
  int capture = -1;  // copies go here, never blocking
  int control = -1;  // end of file: the training ended; answer one byte when all is passed on
};

// Runs until every `from` is at its end. Never returns an error: a destination that is gone makes
// the source be closed, so that the writer learns what it would have learnt without us.
void RunRelay(std::vector<RelayStream> streams, RelayChannels channels);

// How the training's stdout and stderr are led through the relay.
struct OutputPlan {
  std::vector<RelayStream> streams;           // `from` ends, for the relay
  base::UniqueFd child_stdout, child_stderr;  // for the training; invalid: keeps ours
};
// Ptys for terminals, pipes for the rest; one channel for both when they are the same open file, so
// that their order is kept.
base::Result<OutputPlan> PlanOutput();

}  // namespace epochmeter::cli
