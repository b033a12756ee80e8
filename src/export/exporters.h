// SPDX-License-Identifier: Apache-2.0
// The one list of exporters. A new one is one .cc with its ExporterDef and a line in exporters.cc.
#pragma once

#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/report.h"
#include "model/run.h"

namespace epochmeter::exporting {

// What is written: the worked-out report (`report -f`), the raw series, events and text of the run
// (`export -f`), or the report's bill (`bill -f`).
enum class Subject : uint8_t { kReport, kSeries, kBill };
enum class TimeFormat : uint8_t { kUtc, kEpochNs };  // RFC 3339 with ms, or ns since 1970

struct ExportOptions {
  bool long_form = false;  // csv of series: one value a row
  TimeFormat time = TimeFormat::kUtc;
  int indent = 0;                     // of json
  bool brief_epochs = false;          // json: EpochDetail::kBrief
  std::string by;                     // bill as csv: "epoch", "phase", ...; all when empty
  bool without_header = false;        // bill as csv: rows of a further run
  std::vector<std::string> warnings;  // carried into json
};

struct ExporterDef {
  Subject subject;
  std::string_view name;       // what -f takes
  std::string_view extension;  // without the dot
  std::string_view summary;
  // Fails when the run's store does or when the stream goes bad. Memory stays bounded by a stretch
  // of time, however long the run is.
  base::Result<> (*Write)(const model::Run& run, const model::Report& report,
                          const ExportOptions& options, std::ostream& out);
};

std::span<const ExporterDef* const> Exporters();
// Null when there is none.
const ExporterDef* FindExporter(Subject subject, std::string_view name);

}  // namespace epochmeter::exporting
