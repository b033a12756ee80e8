// SPDX-License-Identifier: Apache-2.0
// Moves one stream of the training's output towards its destination so that a process which is
// killed at any instant neither loses nor repeats a byte: what has left the training is either in
// `hand`, a pipe that the launcher keeps open, or at the destination. The next mover goes on there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cli/messages.h"

namespace epochmeter::cli {

// A pipe, both ends without O_NONBLOCK on the side of others; borrowed numbers.
struct PipeEnds {
  int out = -1;
  int in = -1;
};

// One stream: `from` (with O_NONBLOCK) is read, `to` gets every byte. `stream` as in
// model::LogText.
struct RelayStream {
  int from = -1;
  int to = -1;
  unsigned stream = 1;
  PipeEnds hand;  // taken from the training, not yet at the destination
  PipeEnds copy;  // holds the recorder's copy for a moment
};

// A write(2) that is under way, for destinations that can't be spliced to (files opened for
// appending, some devices). Lies in memory that launcher and relays share.
struct WriteJournal {
  std::atomic<int64_t> position = -1;   // of the open file before the write; -1: it has none
  std::atomic<int64_t> file_bytes = 0;  // its size then
  std::atomic<int64_t> size = 0;        // what write(2) was asked for
  std::atomic<int64_t> in_hand = 0;     // bytes in hand then; 0: no write is under way
};

// One thread. The descriptors and the journal are borrowed; no other mover of the same stream may
// be alive.
class StreamMover {
 public:
  enum class Step { kMoved, kWouldWait, kSourceEnded, kReaderGone };

  // Finds out what the mover before it had done. `waits`: PassOn may wait for the destination;
  // otherwise it is given little at a time, and only what it takes at once. Copies go to the
  // descriptor `capture`, never waiting.
  StreamMover(const RelayStream& stream, WriteJournal& journal, int capture, bool waits);

  bool HasInHand() const { return in_hand_ > 0; }
  // Takes what the training has written, without waiting. Only with empty hands.
  Step TakeIn();
  // Brings what is in hand to the destination. A destination that fails for another reason than a
  // reader who left (a full disk) costs these bytes, which are counted.
  Step PassOn();

 private:
  void Recover();
  int64_t WrittenBefore() const;
  ptrdiff_t TakeInByCopy();
  ptrdiff_t WriteOn(size_t size);
  void Discard(size_t size);
  void SendCopy(size_t size);
  char* Bytes() { return payload_ + sizeof(CaptureHeader); }

  const RelayStream stream_;
  WriteJournal& journal_;
  const int capture_;
  const bool waits_;
  size_t in_hand_ = 0;
  uint64_t dropped_bytes_ = 0;      // of copies, since the last that was sent
  uint64_t not_written_bytes_ = 0;  // of the output itself, likewise
  char payload_[sizeof(CaptureHeader) + kCaptureBytes];
};

}  // namespace epochmeter::cli
