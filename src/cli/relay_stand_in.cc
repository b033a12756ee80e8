// SPDX-License-Identifier: Apache-2.0
#include "cli/relay_stand_in.h"

#include <algorithm>
#include <utility>

namespace epochmeter::cli {
namespace {
constexpr int kMostMovesATurn = 256;
}  // namespace

RelayStandIn::RelayStandIn(const std::vector<RelayStream>& streams, WriteJournal* journals,
                           int capture) {
  for (size_t i = 0; i < streams.size(); ++i) {
    streams_.push_back(
        {.ends = streams[i],
         .mover = std::make_unique<StreamMover>(streams[i], journals[i], capture, false),
         .ended = streams[i].from < 0,
         .gone = false});
  }
}

void RelayStandIn::AddPolls(std::vector<pollfd>* polls) const {
  for (const Stream& stream : streams_) {
    if (stream.mover->HasInHand() && !stream.gone) {
      polls->push_back({.fd = stream.ends.to, .events = POLLOUT, .revents = 0});
    } else if (!stream.ended) {
      polls->push_back({.fd = stream.ends.from, .events = POLLIN, .revents = 0});
    }
  }
}

void RelayStandIn::Turn() {
  for (Stream& stream : streams_) Move(stream);
}

void RelayStandIn::Move(Stream& stream) {
  using Step = StreamMover::Step;
  for (int i = 0; i < kMostMovesATurn && !stream.gone; ++i) {
    const bool pass = stream.mover->HasInHand();
    if (!pass && stream.ended) return;
    const Step step = pass ? stream.mover->PassOn() : stream.mover->TakeIn();
    if (step == Step::kWouldWait) return;
    if (step == Step::kSourceEnded) stream.ended = true;
    if (step == Step::kReaderGone) stream.ended = stream.gone = true;
  }
}

bool RelayStandIn::drained() const {
  return std::all_of(streams_.begin(), streams_.end(), [](const Stream& stream) {
    if (stream.gone) return true;
    pollfd readable{.fd = stream.ends.from, .events = POLLIN, .revents = 0};
    const bool waiting = !stream.ended && ::poll(&readable, 1, 0) > 0;
    return !stream.mover->HasInHand() && !waiting;
  });
}

std::vector<size_t> RelayStandIn::TakeClosed() {
  std::vector<size_t> closed;
  for (size_t i = 0; i < streams_.size(); ++i) {
    if (streams_[i].gone && std::exchange(streams_[i].ends.from, -1) >= 0) closed.push_back(i);
  }
  return closed;
}

}  // namespace epochmeter::cli
