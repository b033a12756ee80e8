// SPDX-License-Identifier: Apache-2.0
// The launcher's side of the training's output: starts the relay, and again when it died, and does
// its work while there is none.
#pragma once

#include <poll.h>

#include <memory>
#include <vector>

#include "cli/helper_process.h"
#include "cli/helper_watch.h"
#include "cli/relay.h"
#include "cli/relay_stand_in.h"

namespace epochmeter::cli {

// One thread; nothing here waits.
class TrainingOutput {
 public:
  // Makes the channels. `journals`: kMostStreams in memory that is shared with the relay.
  base::Result<> SetUp(WriteJournal* journals);
  // Leads stdout and stderr through us; without it, or after an error, the training keeps ours.
  base::Result<> Capture();

  // In the training's process: puts our ends on its stdout and stderr.
  void GiveToTraining() const;
  // In the launcher, once the training has them.
  void CloseTrainingsEnds();

  // What the recorder reads copies from.
  int copies() const { return capture_.theirs.get(); }
  HelperWatch& relay() { return relay_; }
  const HelperWatch& relay() const { return relay_; }
  const std::vector<RelayStream>& streams() const { return plan_.streams; }

  // Starts a relay, or stands in for it when there can't be one. What is to be told of the one
  // before, if there was one.
  std::optional<ControlMessage> StartRelay(int64_t awake_ns);
  // Of waitpid, once the relay is gone.
  void NoteRelayEnd(int wait_status);

  void AddPolls(std::vector<pollfd>* polls) const;
  // Reads the relay's messages and passes output on while there is no relay; the signals that the
  // relay has seen.
  std::vector<HelperMessage> Turn();

  // Asks for kDrained, after the training's end.
  void TrainingEnded();
  // All output up to the training's end is passed on, or nobody is there to do it.
  bool AllPassedOn() const;
  bool StandsIn() const { return stand_in_ != nullptr; }
  // Leaves what there is still to a relay that lives.
  void Leave();

 private:
  void StandIn();
  void CloseStream(size_t index);

  WriteJournal* journals_ = nullptr;
  SocketPair capture_, control_;
  OutputPlan plan_;
  HelperWatch relay_{HelperKind::kRelay, base::kNsPerSecond};
  std::unique_ptr<RelayStandIn> stand_in_;
  bool ended_ = false;
  bool drained_ = false;
};

}  // namespace epochmeter::cli
