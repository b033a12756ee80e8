// SPDX-License-Identifier: Apache-2.0
#include "export/text_fields.h"

#include <cmath>

#include "base/json_writer.h"
#include "base/strings.h"

namespace epochmeter::exporting {

std::string CsvCell(std::string_view text) {
  const std::string valid = base::ToValidUtf8(text);
  if (valid.find_first_of(",\"\r\n") == std::string::npos) return valid;
  std::string cell = "\"";
  for (const char c : valid) {
    if (c == '"') cell += '"';
    cell += c;
  }
  return cell += '"';
}

std::string CsvNumber(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return base::JsonNumber(value);
}

std::string CsvNumber(const std::optional<double>& value) {
  return value ? CsvNumber(*value) : std::string();
}

void WriteCsvRow(const std::vector<std::string>& cells, std::ostream& out) {
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) out << ',';
    out << cells[i];
  }
  out << '\n';
}

std::string TimeText(const model::Run& run, int64_t t_ns, TimeFormat format) {
  const std::optional<int64_t> wall_ns = run.WallNs(t_ns);
  if (!wall_ns) return {};
  return format == TimeFormat::kUtc ? base::FormatUtc(*wall_ns) : std::to_string(*wall_ns);
}

model::Interval InRun(const model::Run& run, model::Interval interval) {
  const model::Interval all;
  if (interval.begin_ns == all.begin_ns) interval.begin_ns = run.Recorded().begin_ns;
  if (interval.end_ns == all.end_ns) interval.end_ns = run.Recorded().end_ns;
  return interval;
}

std::string HostName(const model::Run& run) {
  if (!run.info) return {};
  for (const auto& [key, value] : run.info->attributes) {
    if (key == "host") return value;
  }
  return {};
}

base::Result<> StreamState(const std::ostream& out) {
  if (out.good()) return {};
  return base::Error{.what = "cannot write the export",
                     .where = {},
                     .why = "the output was closed or is full",
                     .what_to_do = "free space, or give another file with -o",
                     .code = 0};
}

}  // namespace epochmeter::exporting
