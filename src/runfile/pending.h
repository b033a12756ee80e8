// SPDX-License-Identifier: Apache-2.0
// Records that are not on disk yet, the output of the training apart from the rest: it is what goes
// first where room is short. Also counts what was given up, and of which time, until a Loss tells
// of it. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "model/record.h"

namespace epochmeter::runfile {

// When a record is of; 0 for one that is of no time.
int64_t TimeOf(const model::Record& record);

struct TimeSpan {
  int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;
  bool empty() const { return first_ns > last_ns; }
  void Add(const TimeSpan& other);
  // ", of 4 min 12 s to 5 min 00 s after the start"; empty for no span.
  std::string Text(int64_t start_ns) const;
};

// Encoded records in blocks, so that what a long wait for the disk left is written piece by piece.
class Blocks {
 public:
  struct Block {
    std::string bytes;
    uint64_t count = 0, text_bytes = 0;
    TimeSpan span;
  };

  // `text_bytes` of the record are output of the training.
  void Add(std::string_view encoded, int64_t t_ns, uint64_t text_bytes);
  bool empty() const { return blocks_.empty(); }
  size_t bytes() const { return bytes_; }
  uint64_t count() const { return count_; }
  // Of the oldest block; nothing when there is none.
  std::string_view front() const;
  void PopFront();
  std::deque<Block> Take();

 private:
  std::deque<Block> blocks_;
  size_t bytes_ = 0;
  uint64_t count_ = 0;
};

class Pending {
 public:
  // `encoded` is the record's encoding.
  void Add(const model::Record& record, std::string_view encoded);
  const Blocks& records() const { return records_; }
  const Blocks& log() const { return log_; }
  bool empty() const { return records_.empty() && log_.empty(); }
  size_t bytes() const { return records_.bytes() + log_.bytes(); }
  uint64_t count() const { return records_.count() + log_.count(); }
  void PopRecords() { records_.PopFront(); }
  void PopLog() { log_.PopFront(); }
  // Gives up the output. Returns the bytes of its records.
  size_t DropLog();

  void CountRecord(int64_t t_ns);
  void CountValues(uint64_t count) { drops_.values += count; }
  void CountText(uint64_t bytes, int64_t t_ns);
  bool HasDrops() const { return drops_.records + drops_.values + drops_.text_bytes > 0; }
  // The losses for what was given up since the last call. Spans count from `start_ns`.
  std::vector<model::Loss> TakeDrops(int64_t t_ns, int64_t start_ns);

 private:
  struct Drops {
    uint64_t records = 0, values = 0, text_bytes = 0;
    TimeSpan of_records, of_text;
  };
  Blocks records_, log_;
  Drops drops_;
};

}  // namespace epochmeter::runfile
