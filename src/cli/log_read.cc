// SPDX-License-Identifier: Apache-2.0
#include "cli/log_read.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/strings.h"
#include "cli/log_follow.h"
#include "cli/log_text.h"
#include "ingest/log/file_rank.h"

namespace epochmeter::cli {

using ingest::log::LogEngine;
using ingest::log::LogFile;
using ingest::log::LogInput;

base::Result<std::unique_ptr<LogSource>> LogSource::Find(const std::vector<std::string>& inputs,
                                                         bool follow) {
  std::unique_ptr<LogSource> source(new LogSource(follow));
  source->words_ = inputs;
  source->inputs_ = source->finder_.Find(inputs);
  for (const LogInput& input : source->inputs_) {
    source->files_.push_back({.name = input.name, .modified_ns = input.modified_ns});
  }
  source->notes_ = ingest::log::NameRanks(&source->files_);
  const std::vector<base::Error>& errors = source->finder_.errors();
  for (const base::Error& error : errors) source->failures_.push_back(error.Message());
  if (!source->inputs_.empty() || source->finder_.open()) return source;
  if (!errors.empty()) return errors.front();
  return base::Error{.what = "no log to read",
                     .where = inputs.empty() ? "" : inputs.front(),
                     .why = base::Join(source->finder_.LeftOut(), "; "),
                     .what_to_do = "name a file, a folder with logs, or - for stdin"};
}

base::Result<> LogSource::Read(LogEngine* engine, const LogReading& reading) {
  base::Result<> done;
  if (reading.follow) {
    LogFollower follower(engine, &files_, &failures_, reading);
    done = follower.Run(&finder_, words_, inputs_);
  } else {
    done = ReadAll(engine);
  }
  engine->Finish();
  return done;
}

base::Result<> LogSource::ReadAll(LogEngine* engine) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    base::Result<> read = ReadLog(inputs_[i], files_[i], engine);
    if (!read.ok() && inputs_.size() == 1) return read;
    if (!read.ok()) failures_.push_back(read.error().Message());
  }
  return {};
}

// An error when nothing of the log could be read.
base::Result<> LogSource::ReadLog(const LogInput& input, const LogFile& file, LogEngine* engine) {
  LogText text(engine, file);
  text.Survey(input.parts.front(), input.parts.back());
  std::optional<base::Error> failed;
  for (const std::string& path : input.parts) {
    base::Result<> read = text.Read(
        path, [] { return true; }, &failures_);
    if (read.ok()) continue;
    if (failed || !text.empty()) failures_.push_back(read.error().Message());
    if (text.empty() && !failed) failed = std::move(read).error();
  }
  text.Close();
  if (failed && text.empty()) return *failed;
  if (failed) failures_.push_back(failed->Message());
  if (input.parts.size() > 1) {
    notes_.push_back(fmt::format("{} was rotated and is read as one log, oldest first: {}",
                                 input.name, text.Places()));
  }
  return {};
}

std::vector<std::string> LogSource::warnings() const {
  std::vector<std::string> warnings = failures_;
  for (std::string& sentence : finder_.LeftOut()) warnings.push_back(std::move(sentence));
  return warnings;
}

std::string LogSource::name() const {
  const std::string name = files_.empty() ? "-" : files_.front().name;
  return name == "-" ? "stdin" : name.substr(name.rfind('/') + 1);
}

uint64_t LogSource::bytes() const {
  uint64_t bytes = 0;
  for (const LogInput& input : inputs_) {
    for (const std::string& path : input.parts) {
      std::error_code error;
      const uint64_t size = std::filesystem::file_size(path, error);
      if (!error) bytes += size;
    }
  }
  return bytes;
}

std::optional<int64_t> LogSource::modified_ns() const {
  std::optional<int64_t> last;
  for (const LogFile& file : files_) {
    if (file.modified_ns) last = std::max(last.value_or(*file.modified_ns), *file.modified_ns);
  }
  return last;
}

}  // namespace epochmeter::cli
