// SPDX-License-Identifier: Apache-2.0
// Records and events as the engine would give them, for tests of what is made of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ingest/log/log_record.h"

namespace epochmeter::ingest::log {

// A record with its texts. Valid while it lives and stays where it is.
class FedRecord {
 public:
  explicit FedRecord(uint64_t line, RecordKind kind = RecordKind::kTrain) {
    record_.kind = kind;
    record_.place.line = line;
  }
  FedRecord(const FedRecord&) = delete;
  FedRecord& operator=(const FedRecord&) = delete;

  FedRecord& At(double wall_s) {
    record_.place.wall_ns = static_cast<int64_t>(wall_s * 1e9);
    return *this;
  }
  FedRecord& Of(int32_t rank, uint32_t file = 0) {
    record_.place.rank = rank;
    record_.place.file = record_.place.stream = file;
    return *this;
  }
  FedRecord& Start(uint32_t start) {
    record_.start = start;
    return *this;
  }
  // `number` as printed; its SI value is `scale` times that.
  FedRecord& With(Role role, std::string_view key, double number, double scale = 1,
                  std::string_view unit = {}, std::string_view text = {}) {
    values_.push_back({.key = key,
                       .text = text,
                       .unit = unit,
                       .number = number,
                       .value = number * scale,
                       .role = role});
    return *this;
  }
  const LogRecord& record() {
    record_.values = values_;
    record_.text = "a line";
    return record_;
  }

 private:
  LogRecord record_;
  std::vector<LogValue> values_;
};

inline LogEvent FedEvent(std::string kind, uint64_t line, std::string text,
                         std::vector<EventNumber> numbers = {}) {
  LogEvent event;
  event.kind = std::move(kind);
  event.place.line = line;
  event.text = std::move(text);
  event.numbers = std::move(numbers);
  return event;
}

}  // namespace epochmeter::ingest::log
