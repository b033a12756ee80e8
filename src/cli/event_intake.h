// SPDX-License-Identifier: Apache-2.0
// Client events on their way from the socket into the run: received, understood a part at a time,
// and counted where they were lost. In the thread of the recorder's loop.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "cli/event_receiver.h"
#include "ingest/protocol.h"
#include "model/registry.h"

namespace epochmeter::cli {

class EventIntake {
 public:
  // Starts to receive at once; what comes is kept until Begin. Borrows both; `words` may be null.
  static base::Result<std::unique_ptr<EventIntake>> Start(int socket_fd, RecorderWords* words);

  // Once there is a run to write to. Borrows both.
  void Begin(model::Registry& registry, model::Sink& sink,
             ingest::ProtocolDecoder::Options options);
  // Readable while events wait.
  int wake_fd() const { return receiver_->wake_fd(); }
  bool HasBacklog() const { return !backlog_.empty(); }
  // Understands what came, until `until_ns` at most: a flood must not keep the loop from the rest.
  void Take(int64_t until_ns);
  // Tells of events that were lost and not told of; not more often than each second.
  void TellDropped(int64_t now_ns);
  // The last ones, until `until_ns`; what is left then is counted as lost.
  void Drain(int64_t until_ns);
  // Tells all that is still held back. The end.
  void Finish(int64_t now_ns);

 private:
  explicit EventIntake(RecorderWords* words);
  void Decode(int64_t until_ns);
  void TellFresh(int64_t now_ns);

  RecorderWords* const words_;
  uint64_t lost_before_ = 0;  // by the recorder before this one
  std::unique_ptr<EventReceiver> receiver_;
  std::unique_ptr<ingest::ProtocolDecoder> decoder_;
  model::Sink* sink_ = nullptr;
  std::vector<Datagram> backlog_;  // received, not yet understood
  uint64_t dropped_ = 0, told_ = 0;
  int64_t told_ns_ = 0;
};

}  // namespace epochmeter::cli
