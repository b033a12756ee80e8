// SPDX-License-Identifier: Apache-2.0
// The bytes of the logs that a user names, on their way into the log engine.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ingest/log/engine.h"

namespace epochmeter::cli {

class LogSource {
 public:
  // Files, folders, "-" for stdin. An error when nothing is there to read.
  static base::Result<std::unique_ptr<LogSource>> Find(const std::vector<std::string>& inputs);

  // Feeds all files, one after the other, and finishes the engine.
  base::Result<> Read(ingest::log::LogEngine* engine, bool follow);

  // In the order of their numbers in the engine.
  const std::vector<ingest::log::LogFile>& files() const { return files_; }
  // Inputs that could not be read.
  const std::vector<std::string>& warnings() const { return warnings_; }
  std::string name() const;                    // of the first
  std::optional<int64_t> modified_ns() const;  // of the one that was written last

 private:
  std::vector<ingest::log::LogFile> files_;
  std::vector<std::string> warnings_;
};

}  // namespace epochmeter::cli
