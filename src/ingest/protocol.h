// SPDX-License-Identifier: Apache-2.0
// The receiver's side of the event protocol (docs/protocol.md): datagrams in, records out.
// Bad input is counted as Loss and never fatal; no input makes the state grow without bound.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "ingest/losses.h"
#include "ingest/message.h"
#include "model/registry.h"
#include "model/sink.h"

namespace epochmeter::ingest {

// Borrows both; the sink must be the registry's, so that definitions stand before values.
// One thread.
class ProtocolDecoder {
 public:
  struct Options {
    // No event can be older; an earlier time, or one in the future, is replaced by the arrival.
    int64_t not_before_ns = std::numeric_limits<int64_t>::min();
  };

  ProtocolDecoder(model::Registry& registry, model::Sink& sink)
      : ProtocolDecoder(registry, sink, Options{}) {}
  ProtocolDecoder(model::Registry& registry, model::Sink& sink, Options options);

  // Takes one datagram that arrived at `now_ns`; receive with room for kMaxDatagramBytes + 1.
  // `sender_pid` is the process as the kernel names it, where known. Gives back the event that was
  // written, good until the next call, or null when the datagram was refused.
  const model::Event* Decode(std::string_view datagram, int64_t now_ns,
                             std::optional<int32_t> sender_pid = std::nullopt);

  // Writes counts of losses that have waited for a second; `all` at the end of the run.
  void Flush(int64_t now_ns, bool all = false) { losses_.Flush(now_ns, all); }

  uint64_t accepted() const { return accepted_; }
  uint64_t refused() const { return refused_; }
  // What the last datagram was refused for, kNone when it was not.
  Refusal last_refusal() const { return last_refusal_; }
  // Fields of the last datagram that were left out.
  uint32_t last_bad_fields() const { return message_.bad_fields; }

 private:
  // The process as the kernel names it (0 when unknown) and as it names itself.
  using SenderKey = std::pair<int32_t, int64_t>;
  struct Sender {
    int64_t seq = 0;      // of its last event
    int64_t dropped = 0;  // the highest it told
  };

  void MendTime(int64_t now_ns);
  void CountMissing(SenderKey key, int64_t now_ns);
  void CountDropped(int64_t count, bool first, int64_t now_ns);
  void WriteMemory(int64_t pid, int64_t now_ns);

  model::Sink& sink_;
  Options options_;
  MessageParser parser_;
  AllocatorSeries allocator_;
  LossCounter losses_;
  Message message_;
  model::Record record_;  // holds the event last written
  std::map<SenderKey, Sender> senders_;
  uint64_t accepted_ = 0;
  uint64_t refused_ = 0;
  Refusal last_refusal_ = Refusal::kNone;
};

}  // namespace epochmeter::ingest
