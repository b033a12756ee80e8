// SPDX-License-Identifier: Apache-2.0
// Cells of other tools' tables: numbers with units, and the words that stand where a device has no
// number.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/metric.h"
#include "model/record.h"

namespace epochmeter::ingest {

// How one column of a tool goes into a metric. Limits follow from the metric's unit.
struct ForeignColumn {
  std::string_view name;  // as the tool writes it, lower case, without the unit
  const model::MetricDef* metric;
  std::string_view unit;          // of a number that is written without one: "%", "MiB", ""
  std::string_view meaning = {};  // what the tool means, where that differs from the metric's help
  model::SeriesCondition dash = model::SeriesCondition::kNotSupported;  // what a '-' says
};

enum class CellKind : uint8_t {
  kNumber,
  kNone,    // nothing is written
  kAbsent,  // a word that says why there is no number
  kBad
};

struct CellReading {
  CellKind kind = CellKind::kBad;
  double number = 0;      // as written
  std::string_view unit;  // behind the number; may be empty
  model::SeriesCondition condition = model::SeriesCondition::kOk;  // of kAbsent
};

// "82 %", "7543 MiB", "130,44 W", "0x0000000000000004", "[N/A]", "[Unknown Error]", "-". Decimal
// commas are taken where no point stands.
CellReading ReadCell(std::string_view text);
// Of a state: also "P8", which is 8, and "Yes" and "No".
CellReading ReadStateCell(std::string_view text);

// The number in the metric's own unit; nothing when `unit` measures something else.
std::optional<double> InUnitOf(const model::MetricDef& metric, double number,
                               std::string_view unit);

struct ValueLimits {
  double least, most;
};
// What a device can have at all; numbers beyond are drivers' ways to say nothing.
ValueLimits LimitsOf(const model::MetricDef& metric);

// The fields of a CSV line, in quotes or not, spaces around them dropped. `expected` is how many
// there should be (0: not known): where cutting at every comma gives another number, commas without
// a space behind are taken as decimal ones.
std::vector<std::string> CsvFields(std::string_view line, char separator, size_t expected);
// ';' or '\t' where the header has them and no comma, else ','.
char CsvSeparator(std::string_view header);

// "utilization.gpu [%]" or "memory_used (MiB)" cut into name (lower case) and unit.
struct HeaderField {
  std::string name;
  std::string unit;
};
HeaderField ReadHeaderField(std::string_view text);

}  // namespace epochmeter::ingest
