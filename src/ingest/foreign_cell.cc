// SPDX-License-Identifier: Apache-2.0
#include "ingest/foreign_cell.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "ingest/series_cache.h"

namespace epochmeter::ingest {
namespace {

using model::SeriesCondition;

// value = number * factor / divisor, so that decimal steps stay exact.
struct Unit {
  std::string_view text;  // lower case
  std::string_view base;  // of the metrics
  double factor, divisor;
};
// The NVIDIA tools write MB and mean MiB.
constexpr Unit kUnits[] = {
    {"%", "1", 1, 100},
    {"gpm:%", "1", 1, 100},
    {"", "1", 1, 1},
    {"b", "By", 1, 1},
    {"bytes", "By", 1, 1},
    {"kib", "By", 1024, 1},
    {"mib", "By", 1048576, 1},
    {"mb", "By", 1048576, 1},
    {"gib", "By", 1073741824, 1},
    {"w", "W", 1, 1},
    {"mw", "W", 1, 1e3},
    {"kw", "W", 1e3, 1},
    {"hz", "Hz", 1, 1},
    {"mhz", "Hz", 1e6, 1},
    {"ghz", "Hz", 1e9, 1},
    {"c", "Cel", 1, 1},
    {"j", "J", 1, 1},
    {"mj", "J", 1, 1e3},
    {"ns", "s", 1, 1e9},
    {"us", "s", 1, 1e6},
    {"ms", "s", 1, 1e3},
    {"s", "s", 1, 1},
    {"seconds", "s", 1, 1},
    {"b/s", "By/s", 1, 1},
    {"kib/s", "By/s", 1024, 1},
    {"mib/s", "By/s", 1048576, 1},
    {"gpm:mib/s", "By/s", 1048576, 1},
};

struct Word {
  std::string_view text;  // lower case, a part is enough
  SeriesCondition condition;
};
constexpr Word kWords[] = {
    {"n/a", SeriesCondition::kNotSupported},
    {"not supported", SeriesCondition::kNotSupported},
    {"deprecated", SeriesCondition::kNotSupported},
    {"lost", SeriesCondition::kDeviceLost},
    {"requires reset", SeriesCondition::kDeviceLost},
    {"permission", SeriesCondition::kNoPermission},
    {"not found", SeriesCondition::kNotFound},
    {"error", SeriesCondition::kError},
    {"err!", SeriesCondition::kError},
    {"failed", SeriesCondition::kError},
    {"blank", SeriesCondition::kNotSupported},
};

// Limits of single metrics that their units don't give; they are those of the live collectors. A
// memory thermometer that is not there reads 0 on some boards.
struct FieldLimits {
  std::string_view field;
  ValueLimits limits;
};
constexpr FieldLimits kFieldLimits[] = {
    {"fan_speed_ratio", {0, 2}},        {"performance_state", {0, 15}},
    {"pcie_link_width", {1, 64}},       {"pcie_link_max_width", {1, 64}},
    {"row_remap_pending", {0, 1}},      {"row_remap_failed", {0, 1}},
    {"memory_temperature_c", {1, 150}}, {"retired_pages_pending", {0, 1}},
    {"pcie_link_generation", {1, 16}},  {"pcie_link_max_generation", {1, 16}},
};

bool IsNumberChar(char c) {
  return (c >= '0' && c <= '9') || c == '.' || c == ',' || c == '-' || c == '+';
}

// How many characters from the begin are a number with an exponent, like "2.07e+11".
size_t NumberLength(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && IsNumberChar(text[at])) ++at;
  if (at == 0 || at + 1 >= text.size() || (text[at] != 'e' && text[at] != 'E')) return at;
  size_t end = at + 1;
  if (text[end] == '+' || text[end] == '-') ++end;
  if (end >= text.size() || text[end] < '0' || text[end] > '9') return at;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  return end;
}

std::optional<double> DecimalNumber(std::string_view text) {
  const size_t comma = text.find(',');
  if (comma == std::string_view::npos) return base::ParseDouble(text);
  if (text.find('.') != std::string_view::npos) return std::nullopt;
  std::string with_point(text);
  with_point[comma] = '.';
  return base::ParseDouble(with_point);
}

CellReading ReadWord(std::string_view text) {
  const std::string lower = base::ToLowerAscii(text);
  if (lower == "-") return {.kind = CellKind::kAbsent, .condition = SeriesCondition::kNotSupported};
  if (lower == "nan") return {.kind = CellKind::kNone};
  for (const Word& word : kWords) {
    if (lower.find(word.text) == std::string::npos) continue;
    return {.kind = CellKind::kAbsent, .condition = word.condition};
  }
  return {.kind = CellKind::kBad};
}

// Adds fields to `fields`; a comma is no separator where `soft` and no space follows.
void Cut(std::string_view line, char separator, bool soft, std::vector<std::string>* fields) {
  std::string field;
  bool quoted = false;
  for (size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    const bool last = at + 1 == line.size();
    if (c == '"') {
      quoted = !quoted;
    } else if (c != separator || quoted || (soft && !last && line[at + 1] != ' ')) {
      field += c;
    } else {
      fields->emplace_back(base::Trim(field));
      field.clear();
    }
  }
  fields->emplace_back(base::Trim(field));
}

}  // namespace

CellReading ReadCell(std::string_view text) {
  text = base::Trim(text);
  if (text.empty()) return {.kind = CellKind::kNone};
  if (base::StartsWith(text, "0x") || base::StartsWith(text, "0X")) {
    const auto number = base::ParseUint(text.substr(2), 16);
    if (!number) return {.kind = CellKind::kBad};
    return {.kind = CellKind::kNumber, .number = static_cast<double>(*number)};
  }
  const size_t length = NumberLength(text);
  const auto number = DecimalNumber(text.substr(0, length));
  if (length == 0 || !number || !std::isfinite(*number)) return ReadWord(text);
  return {.kind = CellKind::kNumber, .number = *number, .unit = base::Trim(text.substr(length))};
}

CellReading ReadStateCell(std::string_view text) {
  text = base::Trim(text);
  const std::string lower = base::ToLowerAscii(text);
  if (lower == "yes" || lower == "no") {
    return {.kind = CellKind::kNumber, .number = lower == "yes" ? 1.0 : 0.0};
  }
  const auto level =
      lower.size() > 1 && lower[0] == 'p' ? base::ParseUint(lower.substr(1)) : std::nullopt;
  if (level) return {.kind = CellKind::kNumber, .number = static_cast<double>(*level)};
  return ReadCell(text);
}

std::optional<double> InUnitOf(const model::MetricDef& metric, double number,
                               std::string_view unit) {
  const bool counts = !metric.unit.empty() && metric.unit.front() == '{';
  const std::string lower = base::ToLowerAscii(unit);
  if (counts) return lower.empty() ? std::optional(number) : std::nullopt;
  for (const Unit& known : kUnits) {
    if (known.text == lower && known.base == metric.unit) {
      return number * known.factor / known.divisor;
    }
  }
  return std::nullopt;
}

ValueLimits LimitsOf(const model::MetricDef& metric) {
  for (const FieldLimits& known : kFieldLimits) {
    if (known.field == metric.field) return known.limits;
  }
  const std::string_view unit = metric.unit;
  if (metric.kind == model::MetricKind::kState) return {0, kMostCount};
  // Rounding may lift a full pipe slightly over 1; whole percents may not.
  if (unit == "1") return {0, metric.resolution < 0.01 ? 1.05 : 1.0};
  if (unit == "By") return {0, kMostBytes};
  if (unit == "W") return {0, 20000};
  if (unit == "Cel") return {-50, 150};
  if (unit == "Hz") return {0, 1e11};
  if (unit == "J") return {0, 1e13};
  if (unit == "s") return {0, 1e9};
  if (unit == "By/s") return {0, 1e14};
  return {0, kMostCount};
}

std::vector<std::string> CsvFields(std::string_view line, char separator, size_t expected) {
  std::vector<std::string> fields;
  Cut(line, separator, false, &fields);
  if (separator != ',' || expected == 0 || fields.size() <= expected) return fields;
  std::vector<std::string> soft;
  Cut(line, separator, true, &soft);
  return soft.size() == expected ? soft : fields;
}

char CsvSeparator(std::string_view header) {
  if (header.find(',') != std::string_view::npos) return ',';
  if (header.find(';') != std::string_view::npos) return ';';
  return header.find('\t') != std::string_view::npos ? '\t' : ',';
}

HeaderField ReadHeaderField(std::string_view text) {
  text = base::Trim(text);
  HeaderField field;
  const size_t open = text.find_last_of("[(");
  if (open != std::string_view::npos && (text.back() == ']' || text.back() == ')')) {
    field.unit = base::Trim(text.substr(open + 1, text.size() - open - 2));
    text = base::Trim(text.substr(0, open));
  }
  field.name = base::ToLowerAscii(text);
  return field;
}

}  // namespace epochmeter::ingest
