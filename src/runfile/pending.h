// SPDX-License-Identifier: Apache-2.0
// Records that are not on disk yet, the output of the training apart from the rest: it is what goes
// first where room is short. Also counts what was given up, until a Loss tells of it. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/record.h"

namespace epochmeter::runfile {

class Pending {
 public:
  // `encoded` is the record's encoding.
  void Add(const model::Record& record, std::string_view encoded);
  const std::string& records() const { return records_; }
  const std::string& log() const { return log_; }
  size_t bytes() const { return records_.size() + log_.size(); }
  uint64_t count() const { return count_ + log_count_; }
  void ForgetRecords();
  void ForgetLog();
  // Gives up the output. Returns the bytes of its records.
  size_t DropLog();

  void CountRecord() { ++drops_.records; }
  void CountValues(uint64_t count) { drops_.values += count; }
  void CountText(uint64_t bytes) { drops_.text_bytes += bytes; }
  bool HasDrops() const { return drops_.records + drops_.values + drops_.text_bytes > 0; }
  // The losses for what was given up since the last call.
  std::vector<model::Loss> TakeDrops(int64_t t_ns);

 private:
  struct Drops {
    uint64_t records = 0, values = 0, text_bytes = 0;
  };
  std::string records_, log_;
  uint64_t count_ = 0, log_count_ = 0, log_text_bytes_ = 0;
  Drops drops_;
};

}  // namespace epochmeter::runfile
