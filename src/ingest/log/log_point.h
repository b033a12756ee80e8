// SPDX-License-Identifier: Apache-2.0
// Records of the engine as plain values that outlive the call. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/log/log_record.h"
#include "model/log_report.h"

namespace epochmeter::ingest::log {

std::string_view RecordKindName(RecordKind kind);  // "train"
model::LogPoint CopyOf(const LogRecord& record);
// Whether an event of this kind ended or spoiled a training, or says that something else did.
bool IsBad(std::string_view event_kind);

// The last record, kept cheaply for each and turned into plain values once. One thread.
class KeptRecord {
 public:
  KeptRecord() = default;
  KeptRecord(const KeptRecord&) = delete;
  KeptRecord& operator=(const KeptRecord&) = delete;

  void Keep(const LogRecord& record);
  // The meaning of its steps became known later (LogSink::OnStepMeaning).
  void SetStepMeaning(bool in_epoch);
  bool empty() const { return !any_; }
  // Nothing when none was kept.
  std::optional<model::LogPoint> Take() const;
  // Views into this.
  const LogRecord& record() const { return record_; }

 private:
  std::string_view Hold(std::string_view text);

  LogRecord record_;
  std::vector<LogValue> values_;
  std::string texts_;
  bool any_ = false;
};

// The kinds of records by the keys they print. One thread.
class ShapeTable {
 public:
  void Add(const LogRecord& record);
  // The most frequent first; at most `most`.
  std::vector<model::LogShape> Take(size_t most) const;

 private:
  static constexpr size_t kMostShapes = 256;
  std::map<uint64_t, model::LogShape> shapes_;  // by a hash of kind and keys
  uint64_t last_hash_ = 0;
  model::LogShape* last_ = nullptr;
};

}  // namespace epochmeter::ingest::log
