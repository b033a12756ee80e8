// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <iostream>

#include "base/json_writer.h"
#include "cli/config_file.h"
#include "cli/log_file.h"
#include "cli/open_run.h"
#include "cli/verbs.h"
#include "diagnose/report_builder.h"
#include "export/exporters.h"
#include "export/log_rows.h"

namespace epochmeter::cli {
namespace {

constexpr FlagSpec kFlags[] = {
    {.name = "format", .short_name = 'f', .value_name = "NAME", .help = "csv or jsonl [csv]"},
    {.name = "output", .short_name = 'o', .value_name = "PATH", .help = "file [stdout]"},
    {.name = "long", .value_name = "", .help = "csv: one value a row", .kind = FlagKind::kSwitch},
    {.name = "time", .value_name = "FORM", .help = "utc or epoch_ns [utc]"},
    {.name = "dir", .value_name = "FOLDER", .help = "folder of runs [epochmeter-runs]"},
    kConfigFlag,
    {.name = "strict",
     .value_name = "",
     .help = "end with 4 when parts of the file were lost",
     .kind = FlagKind::kSwitch},
};

base::Error Unknown(const std::string& what, const std::string& word, const char* what_to_do) {
  return {.what = "unknown " + what + " " + word, .where = "", .why = "", .what_to_do = what_to_do};
}

// CSV has no place for events, and its times of day follow the clock.
void TellJumps(const model::Run& run) {
  const auto jumps = std::count_if(run.events.begin(), run.events.end(), [](const auto& event) {
    return event.kind == model::EventKind::kSource && event.name == "clock.jumped";
  });
  if (jumps == 0) return;
  std::fprintf(stderr,
               "epochmeter: the wall clock was set %lld time%s in this run, so timestamps jump; "
               "elapsed_seconds does not, and the report says when and by how much\n",
               static_cast<long long>(jumps), jumps == 1 ? "" : "s");
}

// The records of a training log, which is no run: `log` reads it.
int ExportLog(const Arguments& arguments, const std::string& format) {
  if (exporting::MakeLogRowWriter(format, std::cout) == nullptr) {
    return Fail(arguments, Unknown("format", format, "use csv, jsonl, ecs or normal for a log"),
                kExitUsage);
  }
  for (const char* flag : {"long", "time"}) {
    if (!arguments.Has(flag)) continue;
    return Fail(arguments,
                {.what = std::string("--") + flag + " is for runs",
                 .where = arguments.positionals.front(),
                 .why = "this is a log",
                 .what_to_do = "leave it out; or make a run with 'epochmeter log LOG -o NAME.emr'"},
                kExitUsage);
  }
  const int code =
      WriteLogFile(arguments, {.inputs = arguments.positionals}, format, arguments.Value("output"));
  if (arguments.json() && (code == kExitOk || code == kExitPartial)) {
    base::JsonWriter json;
    json.BeginObject().Field("log", arguments.positionals.front());
    json.Field("output", *arguments.Value("output")).Field("format", format);
    PrintJson(json.EndObject().text());
  }
  return code;
}

int RunExport(const Arguments& arguments) {
  const std::string format = arguments.Value("format").value_or("csv");
  const std::optional<std::string> path = arguments.Value("output");
  if (arguments.json() && (!path || *path == "-")) {
    return Fail(arguments,
                {.what = "--json tells where the export went",
                 .where = "",
                 .why = "",
                 .what_to_do = "give -o PATH with it; rows in JSON are -f jsonl"},
                kExitUsage);
  }
  if (!arguments.positionals.empty() && IsLog(arguments.positionals.front())) {
    return ExportLog(arguments, format);
  }
  const exporting::ExporterDef* exporter =
      exporting::FindExporter(exporting::Subject::kSeries, format);
  if (exporter == nullptr) {
    return Fail(arguments, Unknown("format", format, "use csv or jsonl"), kExitUsage);
  }
  exporting::ExportOptions options;
  options.long_form = arguments.Has("long");
  const std::string time = arguments.Value("time").value_or("utc");
  if (time != "utc" && time != "epoch_ns") {
    return Fail(arguments, Unknown("time form", time, "use utc or epoch_ns"), kExitUsage);
  }
  options.time = time == "utc" ? exporting::TimeFormat::kUtc : exporting::TimeFormat::kEpochNs;
  base::Result<diagnose::ReportOptions> settings = LoadReportOptions(arguments);
  if (!settings.ok()) return Fail(arguments, settings.error(), kExitUsage);
  const base::Result<OpenedRun> opened = OpenNamedRun(arguments);
  if (!opened.ok()) return Fail(arguments, opened.error(), kExitUnreadable);
  const base::Result<std::unique_ptr<Output>> output = Output::Open(path, opened->path);
  if (!output.ok()) return Fail(arguments, output.error(), kExitUnreadable);
  settings->judge = false;  // series are written as they are, by epochs at most
  const model::Report report = diagnose::BuildReport(opened->run, *settings);
  base::Result<> written = exporter->Write(opened->run, report, options, output.value()->stream());
  if (output.value()->reader_gone()) return kExitOk;
  if (written.ok()) written = output.value()->Close();
  if (!written.ok()) return Fail(arguments, written.error(), kExitUnreadable);
  if (format == "csv") TellJumps(opened->run);
  if (arguments.json()) {
    base::JsonWriter json;
    json.BeginObject().Field("run", opened->path).Field("output", *path).Field("format", format);
    PrintJson(json.EndObject().text());
  }
  return ExitCodeOf(arguments, opened->run);
}

}  // namespace

const Command kExportCommand = {.name = "export",
                                .summary = "the samples and events of a run, for other programs",
                                .usage = "[flags] [RUN|LOG]",
                                .examples =
                                    "  epochmeter export run.emr -f csv -o run.csv\n"
                                    "  epochmeter export -f jsonl | head\n"
                                    "  epochmeter export train.log -o train.csv  # its records\n",
                                .flags = kFlags,
                                .max_positionals = 1,
                                .Run = RunExport};

}  // namespace epochmeter::cli
