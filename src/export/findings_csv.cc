// SPDX-License-Identifier: Apache-2.0
#include "export/exporters.h"
#include "export/text_fields.h"

namespace epochmeter::exporting {
namespace {

template <typename T>
std::string NumberCell(const std::optional<T>& value) {
  return value ? std::to_string(*value) : std::string();
}

// A finding a row, with its first evidence; rules that could not judge are only in the json. The
// fields are those of docs/schema/report.schema.json.
base::Result<> Write(const model::Run& run, const model::Report& report,
                     const ExportOptions& options, std::ostream& out) {
  WriteCsvRow({"rule", "severity", "title", "summary", "rank", "pid", "gpu", "confidence",
               "lost_gpu_s", "gain_ratio", "series", "begin", "end"},
              out);
  for (const model::Finding& finding : report.findings) {
    if (finding.severity == model::Severity::kNotApplicable) continue;
    std::vector<std::string> cells = {
        CsvCell(finding.rule),         CsvCell(model::SeverityName(finding.severity)),
        CsvCell(finding.title.en),     CsvCell(finding.summary.en),
        NumberCell(finding.rank),      NumberCell(finding.pid),
        NumberCell(finding.gpu),       CsvNumber(finding.confidence),
        CsvNumber(finding.lost_gpu_s), CsvNumber(finding.gain_ratio)};
    if (finding.evidence.empty()) {
      cells.resize(cells.size() + 3);
    } else {
      const model::Evidence& first = finding.evidence.front();
      cells.push_back(CsvCell(first.series));
      const model::Interval interval = InRun(run, first.interval);
      cells.push_back(TimeText(run, interval.begin_ns, options.time));
      cells.push_back(TimeText(run, interval.end_ns, options.time));
    }
    WriteCsvRow(cells, out);
  }
  return StreamState(out);
}

}  // namespace

extern const ExporterDef kFindingsCsv{.subject = Subject::kReport,
                                      .name = "findings",
                                      .extension = "findings.csv",
                                      .summary = "one finding a row, as csv",
                                      .Write = Write};

}  // namespace epochmeter::exporting
