// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>

#include "base/clock.h"
#include "base/strings.h"
#include "export/log_rows.h"

namespace epochmeter::exporting {
namespace {

using base::JsonWriter;
using model::LogField;

constexpr LogColumn kColumns[] = {{"epoch", "epoch"},
                                  {"epochs", "epochs"},
                                  {"step", "step"},
                                  {"step_in_epoch", "step_in_epoch"},
                                  {"steps_per_epoch", "steps_per_epoch"},
                                  {"total_steps", "total_steps"},
                                  {"loss", "loss"},
                                  {"lr", "lr"},
                                  {"step_time_s", "step_time", true},
                                  {"data_time_s", "data_time", true},
                                  {"interval_s", "interval_time", true},
                                  {"elapsed_s", "elapsed", true},
                                  {"eta_s", "eta", true},
                                  {"throughput_per_s", "throughput", true},
                                  {"memory_bytes", "memory", true}};

// Keys of one object: each is written once.
class Members {
 public:
  explicit Members(JsonWriter& json) : json_(json) {}
  bool Free(std::string_view key) { return keys_.emplace(key).second; }
  JsonWriter& Key(std::string_view key) {
    keys_.emplace(key);
    return json_.Key(key);
  }

 private:
  JsonWriter& json_;
  std::set<std::string, std::less<>> keys_;
};

}  // namespace

std::span<const LogColumn> LogColumns() { return kColumns; }

void WritePrinted(double number, JsonWriter& json) {
  constexpr double kExact = 9007199254740992.0;
  if (std::isnan(number)) {
    json.String("NaN");
  } else if (std::isinf(number)) {
    json.String(number > 0 ? "Infinity" : "-Infinity");
  } else if (std::fabs(number) < kExact && number == std::trunc(number)) {
    json.Int(static_cast<int64_t>(number));
  } else {
    json.Double(number);
  }
}

void WriteLogNumber(const model::LogNumber& number, JsonWriter& json) {
  if (const auto* whole = std::get_if<int64_t>(&number)) {
    json.Int(*whole);
  } else if (const auto* real = std::get_if<double>(&number)) {
    WritePrinted(*real, json);
  } else {
    json.String(std::get<std::string>(number));
  }
}

void WritePrintedField(const LogField& field, JsonWriter& json) {
  const std::string text = base::ToLowerAscii(base::Trim(field.text));
  const bool number = text.empty() || base::ParseDouble(text) || text == "nan" ||
                      base::EndsWith(text, "inf") || base::EndsWith(text, "infinity");
  if (number) {
    WritePrinted(field.number, json);
  } else {
    json.String(field.text);
  }
}

void WritePointMembers(const model::LogPoint& point, JsonWriter& json) {
  Members members(json);
  members.Key("line").Uint(point.line);
  if (point.last_line > point.line) members.Key("last_line").Uint(point.last_line);
  if (point.rank) members.Key("rank").Int(*point.rank);
  if (point.start > 0) members.Key("start").Uint(point.start);
  if (point.wall_ns) members.Key("timestamp").String(base::FormatUtc(*point.wall_ns));
  if (!point.stamp.empty()) members.Key("stamp").String(point.stamp);
  for (const LogColumn& column : kColumns) {
    const LogField* field = point.Find(column.role);
    if (field != nullptr) {
      WritePrinted(column.value ? field->value : field->number, members.Key(column.name));
    } else if (column.role == "epoch" && point.header_epoch) {
      WritePrinted(*point.header_epoch, members.Key(column.name));
    }
  }
  for (const LogField& field : point.fields) {
    if (members.Free(field.key)) WritePrintedField(field, json.Key(field.key));
  }
}

}  // namespace epochmeter::exporting
