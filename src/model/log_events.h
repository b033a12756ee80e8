// SPDX-License-Identifier: Apache-2.0
// What went wrong in training logs, as plain values. Lines count from 1, files from 0. Absent is
// not known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "model/message.h"

namespace epochmeter::model {

using LogNumber = std::variant<int64_t, double, std::string>;
using LogNumbers = std::vector<std::pair<std::string, LogNumber>>;

// Events of one kind that say the same, whatever their numbers.
struct LogMessageRow {
  std::string text;  // of the first
  uint64_t count = 0;
  uint32_t file = 0;  // of the first
  uint64_t line = 0, last_line = 0;
  LogNumbers numbers;  // of the first
};

struct LogEventRow {
  std::string kind;  // "oom_gpu"
  uint64_t count = 0;
  uint32_t file = 0;            // of the first
  std::vector<uint64_t> lines;  // the first twelve
  std::optional<int32_t> rank;
  std::optional<int64_t> wall_ns;
  std::string text;
  LogNumbers numbers;                   // of the first
  std::vector<LogMessageRow> messages;  // the most frequent first
  uint64_t last_line = 0;               // of the last
  bool bad = false;                     // it ended or spoiled the training
};

// What went wrong first, and what only followed.
struct LogCause {
  std::string kind, text;
  uint32_t file = 0;
  uint64_t line = 0;
  std::optional<int32_t> rank;
  Message why;
  std::string confidence;  // "high", "medium", "low"
};

}  // namespace epochmeter::model
