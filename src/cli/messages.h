// SPDX-License-Identifier: Apache-2.0
// What launcher, relay, recorder and sampler say to each other, each over a socket pair of type
// SOCK_SEQPACKET made by the launcher or the recorder: one message a packet, never torn.
// All four are the same build of the same program, so plain structs are the format.
#pragma once

#include <cstdint>

namespace epochmeter::cli {

// Launcher -> recorder.
struct ControlMessage {
  enum class Kind : int32_t { kTrainingStarted = 1, kTrainingEnded = 2 };
  Kind kind = Kind::kTrainingStarted;
  int32_t pid = 0;          // kTrainingStarted
  int32_t wait_status = 0;  // kTrainingEnded: as waitpid gives it
};

// Relay -> recorder: this header, then the bytes.
struct CaptureHeader {
  int64_t t_ns = 0;
  uint64_t dropped_bytes = 0;      // since the last copy: copies that found the buffer full
  uint64_t not_written_bytes = 0;  // since then: output that its destination refused (a full disk)
  uint32_t stream = 1;             // as in model::LogText
  uint32_t padding = 0;
};
inline constexpr int kCaptureBytes = 32 * 1024;

// Relay -> launcher: one byte. All output up to the training's end is passed on; or the
// destination of stream (byte - kRelayStreamClosed) is gone.
inline constexpr char kRelayDrained = 'D';
inline constexpr char kRelayStreamClosed = '0';

// Recorder -> sampler: this byte alone; or this byte and the name of a GPU that the training uses,
// its UUID or bus id.
inline constexpr char kSampleNow = 'S';
inline constexpr char kGpuNamed = 'G';
inline constexpr int kLongestGpuName = 96;

// The descriptors that a recorder lives on. -1 where there is none (attach has no launcher).
struct RecorderChannels {
  int event_socket = -1;  // bound datagram socket of the client protocol
  int control = -1;       // to the launcher
  int capture = -1;       // from the relay
};

}  // namespace epochmeter::cli
