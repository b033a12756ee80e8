// SPDX-License-Identifier: Apache-2.0
#include "export/exporters.h"
#include "export/report_json.h"
#include "export/text_fields.h"

namespace epochmeter::exporting {
namespace {

// "@timestamp" comes first, as log shippers want it; "record" says what the line is.
base::JsonWriter BeginLine(const model::Run& run, int64_t t_ns, std::string_view record) {
  base::JsonWriter json;
  json.BeginObject();
  const std::string time = TimeText(run, t_ns, TimeFormat::kUtc);
  if (!time.empty()) json.Field("@timestamp", time);
  if (run.info) json.Field("run_id", run.info->run_id);
  json.Field("record", record);
  return json;
}

// When what a finding says was so for the last time; the end of the run where it does not say.
int64_t TimeOf(const model::Run& run, const model::Finding& finding) {
  const bool said = !finding.evidence.empty();
  return InRun(run, said ? finding.evidence.front().interval : model::Interval()).end_ns;
}

// An epoch row a line at its end, then a finding a line. Rules that could not judge are only in the
// json.
base::Result<> Write(const model::Run& run, const model::Report& report, const ExportOptions&,
                     std::ostream& out) {
  for (const model::EpochRow& row : report.epochs) {
    base::JsonWriter json = BeginLine(run, row.end_ns, "epoch");
    WriteEpochMembers(run, row, json);
    out << json.EndObject().text() << '\n';
  }
  for (const model::Finding& finding : report.findings) {
    if (finding.severity == model::Severity::kNotApplicable) continue;
    base::JsonWriter json = BeginLine(run, TimeOf(run, finding), "finding");
    WriteFindingMembers(run, finding, json);
    out << json.EndObject().text() << '\n';
  }
  return StreamState(out);
}

}  // namespace

extern const ExporterDef kReportJsonl{.subject = Subject::kReport,
                                      .name = "jsonl",
                                      .extension = "jsonl",
                                      .summary = "one epoch row or finding a line",
                                      .Write = Write};

}  // namespace epochmeter::exporting
