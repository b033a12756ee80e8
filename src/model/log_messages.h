// SPDX-License-Identifier: Apache-2.0
// What training logs say beside their records, as plain values. Lines count from 1, files from 0.
// Absent is not known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/message.h"

namespace epochmeter::model {

// Lines that say the same, whatever their numbers; none of them a record.
struct LogTemplate {
  std::string text;     // "Found an invalid box: id *"
  std::string example;  // the first one, cut
  std::string alarm;    // "error", "warning", "hint", "none"
  uint64_t count = 0;
  uint32_t file = 0;  // of the first
  uint64_t line = 0, last_line = 0;
  std::optional<int64_t> wall_ns;  // of the first, or of the last line before it that has a time
  std::vector<uint32_t> counts;    // in each of LogMessages::stretches
};

// Where equally many lines begin, and how far the training was there.
struct LogStretch {
  uint64_t line = 0;
  std::optional<double> step;      // the last one printed before it, in the first file that has one
  std::optional<int64_t> wall_ns;  // of that record
};

// What a log says beside its records.
struct LogMessages {
  uint64_t lines = 0;                  // that were clustered
  uint64_t kinds = 0;                  // of templates
  uint64_t unclustered = 0;            // lines beyond the limits
  std::vector<LogTemplate> templates;  // the most frequent first
  std::vector<LogStretch> stretches;
};

// A burst of messages, or one never seen before.
struct LogAnomaly {
  std::string kind;     // "burst", "new"
  std::string text;     // of the message, numbers masked
  std::string example;  // as printed
  std::string alarm;    // as of a template
  uint64_t count = 0;   // in these lines
  uint64_t total = 0;   // in the whole log
  uint64_t beside = 0;  // other new messages next to it
  uint32_t file = 0;
  uint64_t line = 0, last_line = 0;
  std::optional<double> step_before, step_after;  // the nearest that are printed
  Message words;
};

}  // namespace epochmeter::model
