// SPDX-License-Identifier: Apache-2.0
// What the launcher does itself while there is no relay: it passes the output on, never waiting.
// Without it a node that allows no more processes would hold the training's output.
#pragma once

#include <poll.h>

#include <memory>
#include <vector>

#include "cli/relay.h"

namespace epochmeter::cli {

// Lives only while no relay does. One thread.
class RelayStandIn {
 public:
  // Borrows all; takes over what a relay that was killed had in hand.
  RelayStandIn(const std::vector<RelayStream>& streams, WriteJournal* journals, int capture);

  // Adds what Turn is to be called for.
  void AddPolls(std::vector<pollfd>* polls) const;
  // Moves what can be moved at once, a bounded amount.
  void Turn();
  // Nothing of the training's output is to be passed on at this moment.
  bool drained() const;
  // The streams whose reader was found to be gone, once.
  std::vector<size_t> TakeClosed();

 private:
  struct Stream {
    RelayStream ends;
    std::unique_ptr<StreamMover> mover;
    bool ended = false;  // the source is at its end, or the reader is gone
    bool gone = false;
  };
  void Move(Stream& stream);
  std::vector<Stream> streams_;
};

}  // namespace epochmeter::cli
