// SPDX-License-Identifier: Apache-2.0
#include "export/exporters.h"
#include "export/report_json.h"
#include "export/text_fields.h"

namespace epochmeter::exporting {
namespace {

// One epoch row a line; "@timestamp" is its end and comes first, as log shippers want it.
base::Result<> Write(const model::Run& run, const model::Report& report, const ExportOptions&,
                     std::ostream& out) {
  for (const model::EpochRow& row : report.epochs) {
    base::JsonWriter json;
    json.BeginObject();
    const std::string time = TimeText(run, row.end_ns, TimeFormat::kUtc);
    if (!time.empty()) json.Field("@timestamp", time);
    if (run.info) json.Field("run_id", run.info->run_id);
    WriteEpochMembers(run, row, json);
    json.EndObject();
    out << json.text() << '\n';
  }
  return StreamState(out);
}

}  // namespace

extern const ExporterDef kReportJsonl{.subject = Subject::kReport,
                                      .name = "jsonl",
                                      .extension = "jsonl",
                                      .summary = "one epoch row a line",
                                      .Write = Write};

}  // namespace epochmeter::exporting
