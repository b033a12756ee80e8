// SPDX-License-Identifier: Apache-2.0
// Records and events of training logs as rows for other programs, one by one as they are found.
#pragma once

#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "base/result.h"
#include "model/log_report.h"

namespace epochmeter::exporting {

class LogRowWriter {
 public:
  virtual ~LogRowWriter() = default;
  // `file` is its name, `text` the record's main line.
  virtual void Record(const model::LogPoint& point, std::string_view file,
                      std::string_view text) = 0;
  // One event: its count is 1, and it has one line.
  virtual void Event(const model::LogEventRow& event, std::string_view file) = 0;
  // A live log pauses: what was held back until it is complete goes out as it is.
  virtual base::Result<> Flush() { return {}; }
  // Writes what is held back. An error when the stream went bad.
  virtual base::Result<> Finish() = 0;
};

// "csv", "jsonl", "ecs" or "normal"; null for another name. Borrows the stream.
std::unique_ptr<LogRowWriter> MakeLogRowWriter(std::string_view format, std::ostream& out);

// The members of a record, into an object that is open: place and time, then what it means under
// our names, then all else under the names that were printed.
void WritePointMembers(const model::LogPoint& point, base::JsonWriter& json);
// As printed: a number where it was one, else its text.
void WritePrintedField(const model::LogField& field, base::JsonWriter& json);
// A number as printed: whole ones without a point, those that are not finite as "NaN", "Infinity"
// and "-Infinity".
void WritePrinted(double number, base::JsonWriter& json);
void WriteLogNumber(const model::LogNumber& number, base::JsonWriter& json);

// Where a record has which figure: a name of ours, the role, and whether the value in the unit of
// the role is meant instead of the printed number.
struct LogColumn {
  std::string_view name, role;
  bool value = false;
};
std::span<const LogColumn> LogColumns();

}  // namespace epochmeter::exporting
