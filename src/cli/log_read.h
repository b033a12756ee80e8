// SPDX-License-Identifier: Apache-2.0
// The bytes of the logs that a user names, on their way into the log engine. One thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ingest/log/engine.h"
#include "ingest/log/log_inputs.h"

namespace epochmeter::cli {

struct LogReading {
  // Until SIGINT or SIGTERM, or until all pipes ended where nothing else is read.
  bool follow = false;
  // With follow: prints what the engine gave until now; false ends the reading.
  std::function<bool()> after_batch;
  // With follow: reading ends when nobody reads this any more; -1: none.
  int output_fd = -1;
};

class LogSource {
 public:
  // Files, folders, patterns, "-" for stdin. An error when nothing is there to read. With `follow`
  // they need not be there yet.
  static base::Result<std::unique_ptr<LogSource>> Find(const std::vector<std::string>& inputs,
                                                       bool follow = false);

  // Feeds all logs, one after the other or, with follow, each when it has something new, and
  // finishes the engine.
  base::Result<> Read(ingest::log::LogEngine* engine, const LogReading& reading);

  // In the order of their numbers in the engine. A log of several files has the newest one's name.
  // Grows while logs are followed.
  const std::vector<ingest::log::LogFile>& files() const { return files_; }
  // What could not be read or not whole, then what was left out; a sentence each.
  std::vector<std::string> warnings() const;
  // What was assumed, and which lines are of which file; a sentence each.
  const std::vector<std::string>& notes() const { return notes_; }
  bool partial() const { return !failures_.empty(); }  // an input could not be read
  std::string name() const;                            // of the first
  std::optional<int64_t> modified_ns() const;          // of the one that was written last
  uint64_t bytes() const;                              // of all files, as far as they are there

 private:
  explicit LogSource(bool follow) : finder_(follow) {}

  base::Result<> ReadAll(ingest::log::LogEngine* engine);
  base::Result<> ReadLog(const ingest::log::LogInput& input, const ingest::log::LogFile& file,
                         ingest::log::LogEngine* engine);

  ingest::log::LogFinder finder_;
  std::vector<std::string> words_;
  std::vector<ingest::log::LogInput> inputs_;
  std::vector<ingest::log::LogFile> files_;
  std::vector<std::string> failures_, notes_;
};

}  // namespace epochmeter::cli
