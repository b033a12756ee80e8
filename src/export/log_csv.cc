// SPDX-License-Identifier: Apache-2.0
// Records of a log as CSV: columns of fixed names first, then those that the log prints. The header
// stands before the rows, so the first rows are held back until their keys are known; keys that
// come up later share the last column.
#include <algorithm>
#include <deque>
#include <map>

#include "base/clock.h"
#include "base/strings.h"
#include "export/log_rows.h"
#include "export/text_fields.h"

namespace epochmeter::exporting {
namespace {

using model::LogField;
using model::LogPoint;

constexpr size_t kHeldRows = 4096;
constexpr size_t kMostColumns = 512;
constexpr std::string_view kPlaces[] = {"record", "file", "line", "rank", "start", "timestamp"};
constexpr std::string_view kRest = "other_values";

class LogCsv : public LogRowWriter {
 public:
  explicit LogCsv(std::ostream& out) : out_(out) {}

  void Record(const LogPoint& point, std::string_view file, std::string_view /*text*/) override {
    if (header_written_) {
      WriteRow(point, file);
      return;
    }
    held_.emplace_back(point, file);
    for (const LogField& field : point.fields) Learn(point, field);
    if (held_.size() == kHeldRows) WriteHeld();
  }

  // A table has one kind of rows.
  void Event(const model::LogEventRow& /*event*/, std::string_view /*file*/) override {}

  base::Result<> Flush() override {
    return header_written_ || held_.empty() ? StreamState(out_) : Finish();
  }

  base::Result<> Finish() override {
    if (!header_written_) WriteHeld();
    return StreamState(out_);
  }

 private:
  // The first value of a role that has a column of its own stands there.
  static const LogColumn* OwnColumn(const LogPoint& point, const LogField& field) {
    for (const LogColumn& column : LogColumns()) {
      if (column.role == field.role) return point.Find(column.role) == &field ? &column : nullptr;
    }
    return nullptr;
  }

  static bool IsFixed(std::string_view name) {
    const auto columns = LogColumns();
    return std::find(std::begin(kPlaces), std::end(kPlaces), name) != std::end(kPlaces) ||
           name == kRest || std::any_of(columns.begin(), columns.end(), [name](const LogColumn& c) {
             return c.name == name;
           });
  }

  void Learn(const LogPoint& point, const LogField& field) {
    if (OwnColumn(point, field) != nullptr || keys_.size() == kMostColumns) return;
    if (!index_.try_emplace(field.key, keys_.size()).second) return;
    keys_.push_back(field.key);
  }

  void WriteHeld() {
    header_written_ = true;
    std::vector<std::string> header(std::begin(kPlaces), std::end(kPlaces));
    for (const LogColumn& column : LogColumns()) header.emplace_back(column.name);
    for (const std::string& key : keys_) {
      header.push_back(CsvCell(IsFixed(key) ? "printed." + key : key));
    }
    header.emplace_back(kRest);
    WriteCsvRow(header, out_);
    for (const auto& [point, file] : held_) WriteRow(point, file);
    held_.clear();
  }

  static std::string Printed(const LogField& field) {
    const bool number = base::ParseDouble(field.text).has_value();
    return number || field.text.empty() ? CsvNumber(field.number) : CsvCell(field.text);
  }

  void WriteRow(const LogPoint& point, std::string_view file) {
    std::vector<std::string> cells = {
        point.kind,
        CsvCell(file),
        std::to_string(point.line),
        point.rank ? std::to_string(*point.rank) : std::string(),
        std::to_string(point.start),
        point.wall_ns ? base::FormatUtc(*point.wall_ns) : std::string()};
    for (const LogColumn& column : LogColumns()) {
      const LogField* field = point.Find(column.role);
      if (field != nullptr) {
        cells.push_back(CsvNumber(column.value ? field->value : field->number));
      } else {
        cells.push_back(column.role == "epoch" ? CsvNumber(point.header_epoch) : std::string());
      }
    }
    const size_t fixed = cells.size();
    cells.resize(fixed + keys_.size() + 1);
    std::string rest;
    for (const LogField& field : point.fields) {
      if (OwnColumn(point, field) != nullptr) continue;
      const auto known = index_.find(field.key);
      if (known == index_.end()) {
        rest += (rest.empty() ? "" : ";") + field.key + "=" + field.text;
      } else if (cells[fixed + known->second].empty()) {
        cells[fixed + known->second] = Printed(field);
      }
    }
    cells.back() = CsvCell(rest);
    WriteCsvRow(cells, out_);
  }

  std::ostream& out_;
  bool header_written_ = false;
  std::deque<std::pair<LogPoint, std::string>> held_;
  std::vector<std::string> keys_;
  std::map<std::string, size_t, std::less<>> index_;
};

}  // namespace

std::unique_ptr<LogRowWriter> MakeLogCsv(std::ostream& out) {
  return std::make_unique<LogCsv>(out);
}

}  // namespace epochmeter::exporting
