// SPDX-License-Identifier: Apache-2.0
// The writer thread: takes records from the recorder's loop and puts them into the run file, so
// that a slow disk never delays a sample.
//
// A disk that is full, fails or does not answer is waited for, from the first moment on: records
// stay in memory meanwhile. When it takes them again, an event `recorder.disk` says for how long it
// did not; its time is the beginning of that.
//
// Write may be called from any thread and never blocks on the disk. Records are durable within
// kFlushPeriodNs; when the disk is slower than that, as soon as it allows. When more than
// kMaxQueuedBytes wait, samples, events and text are dropped and counted as Loss, never
// definitions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/messages.h"
#include "model/sink.h"

namespace epochmeter::cli {

class RecordWriter : public model::Sink {
 public:
  struct Options {
    bool resume = false;  // continue the file of a recorder that died
    bool force = false;   // replace an existing file
    // Where it is counted what came to disk; may be null.
    RecorderWords* words = nullptr;
  };
  // As of the last flush.
  struct Figures {
    uint64_t flushes = 0;
    uint64_t bytes_written = 0;
    int64_t last_flush_ns = 0;
    std::optional<uint64_t> disk_free_bytes;
  };
  static constexpr int64_t kFlushPeriodNs = base::kNsPerSecond / 2;
  static constexpr size_t kMaxQueuedBytes = size_t{32} << 20;
  // Of records that a failing disk does not take, as they are kept: 75 minutes of 240 series at
  // 1 Hz. With what memory adds to it (room to grow, a copy while it is sealed) some 64 MB.
  static constexpr size_t kMaxUnwrittenBytes = size_t{20} << 20;

  // An error when nothing can be recorded there. With `resume` it waits for the disk, else for
  // kOpeningNs: a disk that has not answered then may still turn out to be of no use.
  static constexpr int64_t kOpeningNs = 2 * base::kNsPerSecond;
  static base::Result<std::unique_ptr<RecordWriter>> Open(const std::string& path,
                                                          const Options& options);
  // Writes out what waits at once: an epoch ended, an exception came.
  virtual void FlushSoon() = 0;
  // Ends the file in order; the writer takes no more records. The error says what is missing.
  virtual base::Result<> Finish(const model::RunEnd& end) = 0;
  virtual Figures figures() const = 0;
  // "NFS", ... when the run file is on such a file system and it answered in time, else empty.
  virtual const std::string& network_file_system() const = 0;
  // Where the file is; a file that is moved is followed. After Finish.
  virtual const std::string& path() const = 0;
  // What a resumed file holds already, as it was when it was opened.
  virtual const std::optional<model::RunInfo>& info() const = 0;
  virtual const std::vector<model::EntityDef>& entities() const = 0;
  virtual const std::vector<model::SeriesDef>& series() const = 0;
};

// One line on stderr where RunWriter::Create has put a tail aside; nothing for an empty path.
void TellKeptTail(const std::string& path);

}  // namespace epochmeter::cli
