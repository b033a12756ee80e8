// SPDX-License-Identifier: Apache-2.0
// What launcher, relay, recorder and sampler say to each other, each over a socket pair of type
// SOCK_SEQPACKET made by the launcher or the recorder: one message a packet, never torn.
// All four are the same build of the same program, so plain structs are the format.
#pragma once

#include <atomic>
#include <cstdint>

namespace epochmeter::cli {

enum class HelperKind : int32_t { kRecorder = 1, kRelay = 2 };

// Why a helper was replaced: it died; it stood still, stopped by a signal; it gave no sign of life.
enum class HelperFault : int32_t { kDied = 1, kStopped = 2, kSilent = 3 };

// Launcher -> recorder.
struct ControlMessage {
  enum class Kind : int32_t { kTrainingStarted = 1, kTrainingEnded = 2, kHelperReplaced = 3 };
  Kind kind = Kind::kTrainingStarted;
  int32_t pid = 0;          // kTrainingStarted
  int32_t wait_status = 0;  // kTrainingEnded: as waitpid gives it; kHelperReplaced: how it ended
  int64_t away_ns = 0;      // kHelperReplaced: from when it did nothing until the next one started
  HelperKind helper = HelperKind::kRecorder;  // kHelperReplaced
  HelperFault fault = HelperFault::kDied;     // kHelperReplaced
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

// Helper -> launcher.
struct HelperMessage {
  enum class Kind : int32_t {
    kDrained = 1,       // relay: all output up to the training's end is passed on
    kStreamClosed = 2,  // relay: the reader of stream `value` is gone
    kSignalSeen = 3,    // this helper too got signal `value` from `sender`: it went to all of us
  };
  Kind kind = Kind::kDrained;
  int32_t value = 0;
  int32_t sender = 0;
};

// Recorder -> sampler: this byte alone; or this byte and the name of a GPU that the training uses,
// its UUID or bus id.
inline constexpr char kSampleNow = 'S';
inline constexpr char kGpuNamed = 'G';
inline constexpr int kLongestGpuName = 96;

// What a recorder tells the launcher, and the recorder after it, without a message: it stands when
// the recorder is killed at any instant. In shared memory.
struct RecorderWords {
  std::atomic<int64_t> beat_ns = 0;  // of its loop, CLOCK_MONOTONIC; not above 0 while it opens
  std::atomic<bool> finishing = false;
  std::atomic<uint64_t> events_received = 0;  // datagrams taken off the socket
  std::atomic<uint64_t> events_decoded = 0;   // of them, given to the writer
  std::atomic<uint64_t> events_kept = 0;      // of them, on disk
};

// What a recorder lives on. -1 or null where there is none (attach has no launcher).
struct RecorderChannels {
  int event_socket = -1;  // bound datagram socket of the client protocol
  int control = -1;       // to the launcher
  int capture = -1;       // from the relay
  RecorderWords* words = nullptr;
};

}  // namespace epochmeter::cli
