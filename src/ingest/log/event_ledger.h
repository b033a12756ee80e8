// SPDX-License-Identifier: Apache-2.0
// Folds the events of a log: by kind, and by what they say whatever their numbers, so that a storm
// of equal lines is one row with a count. One thread; memory does not grow with the log.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ingest/log/log_record.h"
#include "model/log_report.h"

namespace epochmeter::ingest::log {

class EventLedger {
 public:
  void Add(const LogEvent& event);
  // In the order of their first lines. A row keeps the first twelve lines and the last one, and at
  // most 32 messages; events beyond them are counted in the row alone.
  std::vector<model::LogEventRow> Take();

  // The event as a row of its own.
  static model::LogEventRow RowOf(const LogEvent& event);

 private:
  struct Kind {
    model::LogEventRow row;
    std::map<std::string, size_t, std::less<>> messages;  // by masked text, place in the row
  };
  static void AddMessage(const LogEvent& event, Kind* kind);

  std::map<std::string, Kind, std::less<>> kinds_;
};

// What an event says, its numbers and quoted words masked: equal for events that tell the same.
std::string MaskedText(const LogEvent& event);

}  // namespace epochmeter::ingest::log
