// SPDX-License-Identifier: Apache-2.0
// The captured output of a run as lines, put together from the pieces it came in.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/run.h"

namespace epochmeter::exporting {

struct LogLine {
  int64_t t_ns = 0;  // of the piece in which it began
  uint8_t stream = 1;
  std::string text;  // without its line end
};

// Goes through the log once, in order of arrival. Borrows the run.
class LogLines {
 public:
  explicit LogLines(const model::Run& run) : run_(run) {}
  // The lines that were completed by pieces up to `end_ns`.
  std::vector<LogLine> TakeUntil(int64_t end_ns);
  // What is left without a line end, after the last TakeUntil.
  std::vector<LogLine> TakeRest();

 private:
  void Split(const model::LogText& piece, std::vector<LogLine>* lines);
  const model::Run& run_;
  size_t next_ = 0;
  std::map<uint8_t, LogLine> open_;
};

}  // namespace epochmeter::exporting
