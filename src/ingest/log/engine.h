// SPDX-License-Identifier: Apache-2.0
// The log engine: bytes of training logs in, progress records and events out, in one pass and
// without being told a format. Used by one thread; memory does not grow with the log.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/log/log_record.h"

namespace epochmeter::ingest::log {

// What is known of a file beside its bytes.
struct LogFile {
  std::string name;                    // as the user named it; the rank may be in it
  std::optional<int64_t> modified_ns;  // UTC; bounds the year of stamps without one
  // UTC of lines that name no zone: what local time is ahead. Absent: the process's zone.
  std::optional<int64_t> zone_offset_s;
  std::optional<int32_t> rank;
};

struct EngineCounts {
  uint64_t bytes = 0;
  uint64_t lines = 0;      // '\n'
  uint64_t segments = 0;   // carriage returns and backspaces count too
  uint64_t cut_lines = 0;  // longer than the limit
  uint64_t bad_bytes = 0;  // no text in any encoding known: NULs, broken UTF-8
  uint64_t records = 0;    // of training
  uint64_t eval_records = 0;
};

class TemplateTable;

struct EngineOptions {
  bool messages = false;  // cluster lines that are no records, see LogEngine::messages
  // With 2 or more the lines are cut in the caller's thread and understood in another one, which
  // then calls the sink; what the sink gets is the same. After Idle, Close and Finish it has all.
  unsigned threads = 1;
};

class LogEngine {
 public:
  // Borrows the sink. Training records of one stream come in the order of their lines. A record may
  // come after later events and evaluations, while it is not yet sure what its line means or which
  // lines belong to it.
  explicit LogEngine(LogSink& sink, const EngineOptions& options = {});
  ~LogEngine();

  // The number of the file in LinePlace::file.
  uint32_t Open(const LogFile& file);
  // What is known of its begin and end before it is read, for the dates of stamps; once, before the
  // first Feed. An empty tail says that the head is the whole file.
  void Survey(uint32_t file, std::string_view head, std::string_view tail);
  // The next bytes of a file, in any pieces. `wall_ns`: when they were written, where it is known
  // (a capture); it stands for lines without a stamp of their own.
  void Feed(uint32_t file, std::string_view bytes, std::optional<int64_t> wall_ns = std::nullopt);
  // A live file has nothing more for now: what is decided goes out.
  void Idle();
  // The file's end: its last line counts also without a line end.
  void Close(uint32_t file);
  // Ends all files, and decides what is still open.
  void Finish();

  const EngineCounts& counts() const;
  // What was assumed (year, zone, order of day and month, rank); a sentence each.
  std::vector<std::string> Notes() const;
  // Similar lines that are no records, and the steps between them; null unless asked for. Good as
  // long as the engine.
  const TemplateTable* messages() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace epochmeter::ingest::log
