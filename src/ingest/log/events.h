// SPDX-License-Identifier: Apache-2.0
// Finds what went wrong in a log: out of memory, kills, tracebacks, NCCL, Slurm, overflows, ... One
// thread; memory does not grow with the log.
#pragma once

#include <memory>
#include <string_view>

#include "ingest/log/log_record.h"

namespace epochmeter::ingest::log {

class EventReader {
 public:
  explicit EventReader(LogSink& sink);
  ~EventReader();

  // Whether a line may be, begin or end an event, judged by its words alone: the answer does not
  // depend on digits, spaces, points and signs, and is kept for all lines that differ in nothing
  // else. Pure.
  static bool MayMatter(std::string_view text);
  // Lines of which MayMatter is true, and all lines of a stream for which WantsNext is true, in
  // order.
  void Line(const LinePlace& place, std::string_view text);
  // The stream is inside a block (a traceback, a wrapped message) whose next line must be seen.
  bool WantsNext(uint32_t stream) const;
  // Training records, for what their values say: a loss that is NaN or infinite.
  void Record(const LogRecord& record);
  // Ends open blocks: of one stream (its file ended), of all.
  void Finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace epochmeter::ingest::log
