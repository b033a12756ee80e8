// SPDX-License-Identifier: Apache-2.0
// Writes NAME.emr and NAME.emr.tail (FORMAT.md). One writer per file, held by a lock; one thread.
//
//   EPM_ASSIGN(auto writer, RunWriter::Create(path, {}));
//   writer->Write(record);     // memory only, never waits for the disk
//   writer->Flush();           // once a second: one write and one fdatasync, seals when it is due
//   writer->Finish(end);       // seals, closes the file in order, removes the tail
//
// When the disk fails, nothing that was written is given up: Flush returns the error, keeps what it
// has up to Options::memory_limit_bytes and tries again the next time. What had to be dropped then
// is counted in stats() and written as a Loss once there is room. Destroying an unfinished writer
// leaves both files as after a crash: readable, and RecoverRun or Resume closes them; files that
// Create made and that no flush ever reached are removed.
//
// The lock belongs to the open file: a child made by fork alone would keep it, exec drops it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/sink.h"

namespace epochmeter::runfile {

class FileSystem;

struct WriterStats {
  uint64_t records = 0;          // taken by Write
  uint64_t dropped_records = 0;  // given up for want of memory while the disk failed, or too large
  uint64_t dropped_log_bytes = 0;  // of output, which goes first where room is short
  uint64_t dropped_values = 0;     // of undefined series, or beyond what their resolution can store
  uint64_t flushes = 0;            // that reached the disk
  uint64_t failed_flushes = 0;     // that did not; their records are kept
  uint64_t seals = 0;              // chunk sets written by this writer
  uint64_t failed_seals = 0;       // tried again later; the tail keeps everything
  uint64_t bytes_written = 0;      // to both files
  uint64_t pending_bytes = 0;      // in memory only, not yet on the disk
  int64_t last_flush_ns = 0;       // duration of the last Flush, waiting for the disk included
};

class RunWriter : public model::Sink {
 public:
  struct Options {
    bool force = false;                            // replace an existing run file
    bool wait_for_disk = false;                    // see Create
    uint32_t ticks_per_seal = 600;                 // samples of a series in one chunk set
    size_t seal_bytes = size_t{8} << 20;           // ... or so many bytes of records
    size_t memory_limit_bytes = size_t{64} << 20;  // of records not on disk, and of unsealed ones
    FileSystem* file_system = nullptr;             // borrowed; null is the real one
  };

  // Creates both files, or none. Refuses a path that exists (unless forced), one that another
  // writer holds, and always what is no regular file. A tail whose main file is gone is kept as
  // NAME.emr.tail.old, with a number appended where that exists. With wait_for_disk a full or
  // failing disk is no error: Flush makes the files once the disk allows.
  static base::Result<std::unique_ptr<RunWriter>> Create(const std::string& path,
                                                         const Options& options);
  // Goes on with a file whose writer died: seals what the tail holds, then appends. Writes a Loss
  // of kind "recorder.restarted", and one for everything the crash cost. A torn end is saved beside
  // first (recover.h). Refuses a file whose writer lives or that was finished.
  static base::Result<std::unique_ptr<RunWriter>> Resume(const std::string& path,
                                                         const Options& options);

  // Never waits for the disk. Values are kept in steps of their series' resolution from here on, so
  // that a reader sees the same number before and after sealing.
  void Write(const model::Record& record) override = 0;
  // After success everything written before survives a crash and a power failure. Where only the
  // output of the training found no room, the rest is safe although this is an error.
  virtual base::Result<> Flush() = 0;
  // Flush, then moves the tail into the main file as one chunk set. Called by Flush when due.
  virtual base::Result<> Seal() = 0;
  // Ends the file. On error, whose text says what is missing, the files stay as they are and Finish
  // can be called again. Output that a full disk has no room for is given up then. An error too
  // when no path leads to our file any more: then what was written can't be reached.
  virtual base::Result<> Finish(const model::RunEnd& end) = 0;
  // Removes both files, for an importer that failed. An error for a writer made by Resume. After
  // success nothing may be written.
  virtual base::Result<> Discard() = 0;

  // What a resumed file already defines. Giving these to a new Registry in order, before anything
  // else, makes it hand out the same ids. Compare info()->boot_id before going on: after a reboot
  // CLOCK_MONOTONIC starts again and a new file is right.
  virtual const std::optional<model::RunInfo>& info() const = 0;
  virtual const std::vector<model::EntityDef>& entities() const = 0;
  virtual const std::vector<model::SeriesDef>& series() const = 0;
  virtual const WriterStats& stats() const = 0;
  // Where the tail of an earlier run was put; empty: there was none.
  virtual const std::string& kept_tail() const = 0;
  // False on a file system without locks: a second writer can be told only by the file it creates.
  virtual bool locked() const = 0;
  // Where the file is now: a file that is moved while it is written is followed.
  virtual const std::string& path() const = 0;
};

}  // namespace epochmeter::runfile
