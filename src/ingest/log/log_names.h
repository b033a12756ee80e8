// SPDX-License-Identifier: Apache-2.0
// What the names of log files say: their order, and which are parts of one log that was rotated.
// Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace epochmeter::ingest::log {

// Numbers in names count as numbers: "workerlog.2" before "workerlog.10".
bool NaturalLess(std::string_view a, std::string_view b);

// A name that a rotation gives: "train.log.2.gz", "train.log-20260131", "train.2026-01-31_12.log".
struct RotatedName {
  std::string base;  // "train.log", with its folder
  uint64_t number = 0;
  std::string date;     // digits alone; empty: numbered
  bool packed = false;  // by the ending
};
std::optional<RotatedName> ReadRotatedName(std::string_view path);

// One log: the files that hold it, oldest first.
struct LogParts {
  std::vector<std::string> paths;
};
// Puts parts of one log together, where the first of them stands. Numbers are those of ranks unless
// the log itself ("train.log" beside "train.log.1") is named or there, or all but the newest are
// packed; dates need the log itself. A part that is there packed and unpacked is taken once.
std::vector<LogParts> JoinRotated(const std::vector<std::string>& paths,
                                  const std::function<bool(const std::string&)>& is_there);

}  // namespace epochmeter::ingest::log
