// SPDX-License-Identifier: Apache-2.0
// What a log tells about the way to a GPU that ran out of memory: how the printed memory grew, and
// the batch size printed nearest. One thread; a bounded number of points per file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ingest/log/events/event_family.h"
#include "model/message.h"

namespace epochmeter::ingest::log {

class OomPostMortem {
 public:
  // Training records, for their memory and batch size.
  void Record(const LogRecord& record);
  // Lines with a batch size in words: "batch_size: 32".
  void Line(const EventLine& line);
  // Adds to an "oom_gpu" event what its file printed before:
  //   memory_from_bytes, memory_to_bytes, memory_steps, memory_growth ("leak", "spike", "flat");
  //   batch_size, batch_size_line; fragmented (1: more was free than was asked for).
  void Explain(LogEvent* event) const;

 private:
  struct Point {
    double step = 0;  // as printed, else the record's number
    double bytes = 0;
  };
  struct File {
    uint32_t start = 0;
    uint64_t records = 0;
    uint64_t keep_each = 1;  // of so many records one is kept
    std::vector<Point> points;
    Point last;
    std::optional<int64_t> batch_size;
    uint64_t batch_size_line = 0;
  };
  static const char* Growth(const File& file);
  File* Find(uint32_t file);

  std::map<uint32_t, File> files_;
};

// What to do about an "oom_gpu" event, the likeliest help first.
std::vector<model::Message> OomAdvice(const LogEvent& event);

}  // namespace epochmeter::ingest::log
