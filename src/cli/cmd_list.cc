// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs.h"

#include <fmt/format.h>

#include "base/json_writer.h"
#include "cli/config_file.h"
#include "cli/many_runs.h"
#include "cli/open_run.h"
#include "cli/text_options.h"
#include "cli/writer_metrics.h"
#include "collect/schedule.h"
#include "collect/sources.h"
#include "export/exporters.h"
#include "ingest/importers.h"
#include "render/columns.h"
#include "runfile/run_reader.h"

namespace epochmeter::cli {
namespace {

// One metric and who gives it.
struct ListedMetric {
  std::string_view source;
  const model::MetricDef* def;
};

std::vector<ListedMetric> AllMetrics() {
  std::vector<ListedMetric> all;
  for (const auto sources : {collect::GpuSources(), collect::HostSources()}) {
    for (const collect::SourceDef& source : sources) {
      for (const model::MetricDef& metric : source.metrics) all.push_back({source.name, &metric});
    }
  }
  for (const model::MetricDef& metric : collect::ScheduleMetrics()) {
    all.push_back({"schedule", &metric});
  }
  for (const model::MetricDef& metric : WriterMetrics::Metrics()) {
    all.push_back({"recorder.file", &metric});
  }
  for (const model::MetricDef& metric : ingest::ClientMetrics()) all.push_back({"client", &metric});
  return all;
}

void MetricsAsJson() {
  base::JsonWriter json;
  json.BeginObject().Key("metrics").BeginArray();
  for (const ListedMetric& metric : AllMetrics()) {
    const model::MetricDef& def = *metric.def;
    json.BeginObject().Field("name", def.name).Field("label", def.label);
    json.Field("field", def.field).Field("unit", def.unit);
    json.Field("kind", model::MetricKindName(def.kind)).Field("scope", model::ScopeName(def.scope));
    json.Field("resolution", def.resolution);
    json.Field("prometheus", "epochmeter_" + std::string(def.prometheus));
    json.Field("source", metric.source).Field("call", def.source).Field("help", def.help);
    json.EndObject();
  }
  PrintJson(json.EndArray().EndObject().text());
}

void MetricsAsText() {
  std::string text;
  std::string_view source;
  for (const ListedMetric& metric : AllMetrics()) {
    const model::MetricDef& def = *metric.def;
    if (metric.source != source)
      text += fmt::format("{}{}\n", text.empty() ? "" : "\n", metric.source);
    source = metric.source;
    const std::string name =
        std::string(def.name) + (def.label.empty() ? "" : "{" + std::string(def.label) + "}");
    text += fmt::format("  {:<34} {:<9} {:<8} {}\n", name, def.unit,
                        model::MetricKindName(def.kind), def.help);
  }
  PrintOut(text);
}

int RunList(const Arguments& arguments) {
  const std::string what =
      arguments.positionals.empty() ? "metrics" : arguments.positionals.front();
  if (what != "metrics") {
    return Fail(arguments,
                {.what = "cannot list " + what,
                 .where = "",
                 .why = "",
                 .what_to_do = "epochmeter list metrics"},
                kExitUsage);
  }
  if (arguments.json()) {
    MetricsAsJson();
  } else {
    MetricsAsText();
  }
  return kExitOk;
}

constexpr FlagSpec kLsFlags[] = {
    {.name = "dir", .value_name = "FOLDER", .help = "folder of runs [epochmeter-runs]"},
    {.name = "long",
     .short_name = 'l',
     .value_name = "",
     .help = "what each run used, lost and suffered from, and what runs of one kind take",
     .kind = FlagKind::kSwitch},
    kSortFlag,
    {.name = "format",
     .short_name = 'f',
     .value_name = "NAME",
     .help = "with --long: text, md, json or csv [text]"},
    {.name = "output",
     .short_name = 'o',
     .value_name = "PATH",
     .help = "with --long: file [stdout]"},
    kConfigFlag,
    kLangFlag,
    kColorFlag,
    kAsciiFlag,
};

// What a line of `ls` says of a run; the reason instead when the file can't be opened.
struct LsRow {
  FoundRun found;
  std::string error;
  std::string state;    // "exit 0", "signal 9", "running", "no end", ...
  std::string started;  // UTC
  std::optional<double> duration_s;
  std::string command;
};

LsRow DescribeFound(const FoundRun& found) {
  LsRow row;
  row.found = found;
  const base::Result<model::Run> run = runfile::OpenRunWithoutEvents(found.path);
  if (!run.ok()) {
    row.error = run.error().Message();
    return row;
  }
  if (run->span.end_ns > run->span.begin_ns) {
    row.duration_s = base::SecondsFromNs(run->span.end_ns - run->span.begin_ns);
  }
  if (run->info) row.started = base::FormatUtc(run->info->anchor.wall_ns).substr(0, 19);
  if (!run->end) {
    row.state = IsBeingWritten(found.path) ? "running" : "no end";
  } else if (run->end->exit_code) {
    row.state = "exit " + std::to_string(*run->end->exit_code);
  } else if (run->end->signal) {
    row.state = "signal " + std::to_string(*run->end->signal);
  } else {
    row.state = run->end->reason;
  }
  if (!run->info) return row;
  for (const auto& [key, value] : run->info->attributes) {
    if (key == "command") row.command = value;
  }
  return row;
}

int RunLs(const Arguments& arguments) {
  std::string folder = arguments.Value("dir").value_or("epochmeter-runs");
  if (arguments.Has("long") || arguments.Has("sort")) {
    return ReportManyRuns(arguments, arguments.positionals.empty()
                                         ? std::vector<std::string>{folder}
                                         : arguments.positionals);
  }
  if (!arguments.positionals.empty()) folder = arguments.positionals.front();
  const base::Result<std::vector<FoundRun>> runs = FindRuns(folder);
  if (!runs.ok()) return Fail(arguments, runs.error(), kExitUnreadable);
  base::JsonWriter json;
  json.BeginObject().Key("runs").BeginArray();
  std::string text = fmt::format("{:<46} {:<19} {:>12} {:<10} {}\n", "run", "started (UTC)",
                                 "duration", "end", "command");
  for (const FoundRun& found : *runs) {
    const LsRow row = DescribeFound(found);
    json.BeginObject().Field("run_id", found.run_id).Field("path", found.path);
    json.Field("bytes", found.bytes).Field("modified", base::FormatUtc(found.modified_wall_ns));
    json.Field("started", row.started)
        .Field("duration_s", row.duration_s)
        .Field("state", row.state);
    json.Field("command", row.command).Field("error", row.error).EndObject();
    // Names and commands are of others: nothing in them may move the terminal's cursor.
    text += fmt::format("{:<46} {:<19} {:>12} {:<10} {}\n", render::Plain(found.run_id),
                        row.started, row.duration_s ? base::FormatDuration(*row.duration_s) : "-",
                        row.error.empty() ? render::Plain(row.state) : "unreadable",
                        render::Plain(row.error.empty() ? row.command : row.error));
  }
  if (arguments.json()) {
    PrintJson(json.EndArray().EndObject().text());
  } else {
    PrintOut(text);
  }
  return kExitOk;
}

}  // namespace

const Command kListCommand = {.name = "list",
                              .summary = "what can be measured: list metrics",
                              .usage = "metrics",
                              .examples = "  epochmeter list metrics\n",
                              .flags = {},
                              .max_positionals = 1,
                              .Run = RunList};

const Command kLsCommand = {.name = "ls",
                            .summary = "the recorded runs, newest first",
                            .usage = "[flags] [FOLDER]",
                            .examples = "  epochmeter ls\n  epochmeter ls --long --sort waste\n",
                            .flags = kLsFlags,
                            .max_positionals = -1,
                            .Run = RunLs};

}  // namespace epochmeter::cli
