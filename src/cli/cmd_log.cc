// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "base/json_writer.h"
#include "base/strings.h"
#include "cli/config_file.h"
#include "cli/log_file.h"
#include "cli/log_job.h"
#include "cli/log_to_run.h"
#include "cli/open_run.h"
#include "cli/text_options.h"
#include "cli/verbs.h"
#include "export/log_json.h"
#include "export/log_regex.h"
#include "export/log_rows.h"
#include "render/log_page.h"

namespace epochmeter::cli {
namespace {

constexpr FlagSpec Switch(std::string_view name, std::string_view help) {
  return {.name = name, .value_name = "", .help = help, .kind = FlagKind::kSwitch};
}

constexpr FlagSpec kFlags[] = {
    {.name = "format",
     .short_name = 'f',
     .value_name = "NAME",
     .help = "text, json, csv, jsonl (all records), ecs, normal or regex [text]"},
    {.name = "output",
     .short_name = 'o',
     .value_name = "PATH",
     .help = "file; NAME.emr is a run file for report, export and page; "
             ".json, .csv and .jsonl say the format [stdout]"},
    Switch("ecs", "records and events as Elastic Common Schema, one document a line"),
    Switch("normalize", "records as [LEVEL] time - Step N, Loss=N, Time=Ns, GPU_Mem=NGB"),
    Switch("emit-regex", "patterns for SageMaker, Katib and Python that find this log's values"),
    Switch("follow", "read on what is still written, through rotation, and print each record"),
    {.name = "join",
     .value_name = "RUN",
     .help = "with -o NAME.emr: a recording of the same job that the log's steps go into"},
    Switch("force", "replace an existing run file"),
    {.name = "threads",
     .value_name = "N",
     .help = "that sum a log up, 1 or 2; the result is the same [2 from 16 MiB on]"},
    kLangFlag,
    kColorFlag,
    kAsciiFlag,
    kNoRedactFlag,
    kConfigFlag,
    Switch("strict", "end with 4 when an input could not be read"),
};

struct Wanted {
  LogJob job;
  std::string format;
  std::optional<std::string> path;
  std::optional<std::string> run_path;
  render::TextOptions text;
  diagnose::ReportOptions report;
};

// What the name of the output asks for where nothing else does: rows and JSON are written, pages
// and pictures are made of a run.
base::Result<std::string> FormatOfOutput(const Arguments& arguments) {
  const std::string path = base::ToLowerAscii(arguments.Value("output").value_or("-"));
  const size_t dot = path.find('.', path.rfind('/') + 1);
  const std::string ending = dot == std::string::npos ? "" : path.substr(path.rfind('.') + 1);
  for (const char* rows : {"json", "csv", "jsonl"}) {
    if (ending == rows) return ending;
  }
  for (const char* page : {"html", "svg", "png", "md"}) {
    if (ending != page) continue;
    return UsageError("a log is not written as " + ending,
                      fmt::format("make a run of it: 'epochmeter log LOG -o NAME.emr', then "
                                  "'epochmeter report NAME.emr -f {} -o NAME.{}'",
                                  ending, ending));
  }
  return std::string(arguments.Has("follow") ? "normal" : "text");
}

// One of the names, from -f or from the switch that stands for it.
base::Result<std::string> FormatOf(const Arguments& arguments) {
  std::vector<std::string> given;
  if (const auto format = arguments.Value("format")) given.push_back(*format);
  if (arguments.json()) given.emplace_back("json");
  if (arguments.Has("ecs")) given.emplace_back("ecs");
  if (arguments.Has("normalize")) given.emplace_back("normal");
  if (arguments.Has("emit-regex")) given.emplace_back("regex");
  // "--ecs" says which JSON Lines are meant.
  if (given.size() == 2 && given[0] == "jsonl" && given[1] == "ecs") given.erase(given.begin());
  given.erase(std::unique(given.begin(), given.end()), given.end());
  if (given.size() > 1) {
    return UsageError("several formats: " + base::Join(given, ", "), "ask for one at a time");
  }
  if (given.empty()) return FormatOfOutput(arguments);
  constexpr std::string_view kNames[] = {"text", "json", "csv", "jsonl", "ecs", "normal", "regex"};
  if (std::find(std::begin(kNames), std::end(kNames), given[0]) == std::end(kNames)) {
    return UsageError("unknown format " + given[0],
                      "use text, json, csv, jsonl, ecs, normal or regex");
  }
  return given[0];
}

base::Result<Wanted> WantedOf(const Arguments& arguments) {
  Wanted wanted;
  wanted.job.inputs = arguments.positionals;
  wanted.job.follow = arguments.Has("follow");
  EPM_ASSIGN(wanted.format, FormatOf(arguments));
  EPM_ASSIGN(wanted.text, MakeTextOptions(arguments));
  EPM_ASSIGN(wanted.report, LoadReportOptions(arguments));
  if (const auto threads = arguments.Value("threads")) {
    const auto number = base::ParseInt(*threads);
    if (!number || *number < 1 || *number > 2) {
      return UsageError("--threads is " + *threads, "use 1 or 2");
    }
    wanted.job.threads = static_cast<unsigned>(*number);
  }
  wanted.path = arguments.Value("output");
  if (wanted.path && base::EndsWith(*wanted.path, ".emr")) std::swap(wanted.path, wanted.run_path);
  if (arguments.Has("join") && !wanted.run_path) {
    return UsageError("--join makes a run file", "give -o NAME.emr with it");
  }
  const bool rows = exporting::MakeLogRowWriter(wanted.format, std::cout) != nullptr;
  if (rows && wanted.run_path) {
    return UsageError("a run file and rows are two outputs", "write them one after the other");
  }
  return wanted;
}

int CodeOf(const Arguments& arguments, const LogJobResult& result) {
  for (const std::string& warning : result.warnings) {
    std::fputs(("epochmeter: " + warning + "\n").c_str(), stderr);
  }
  return arguments.Has("strict") && result.partial ? kExitPartial : kExitOk;
}

std::string PageOf(const Wanted& wanted, const LogJobResult& result) {
  if (wanted.format == "json") {
    base::JsonWriter json;
    exporting::WriteLogData(result.report, result.run, json);
    return JsonEnvelope(json.text(), result.warnings) + "\n";
  }
  if (wanted.format == "regex") return exporting::LogPatterns(result.report);
  return render::RenderLog(result.report, wanted.text);
}

int WriteSummary(const Arguments& arguments, const Wanted& wanted) {
  base::Result<LogJobResult> result =
      wanted.run_path
          ? WriteRunOfLogs(wanted.job, wanted.report, *wanted.run_path,
                           {.force = arguments.Has("force"), .join = arguments.Value("join")})
          : SumUpLogs(wanted.job, wanted.report, nullptr);
  if (!result.ok()) {
    const bool usage = result.error().code == kUsageError;
    return Fail(arguments, result.error(), usage ? kExitUsage : kExitUnreadable);
  }
  const auto output = Output::Open(wanted.path, wanted.job.inputs.front());
  if (!output.ok()) return Fail(arguments, output.error(), kExitUnreadable);
  (*output)->stream() << PageOf(wanted, *result);
  if ((*output)->reader_gone()) return kExitOk;
  const base::Result<> written = (*output)->Close();
  if (!written.ok()) return Fail(arguments, written.error(), kExitUnreadable);
  if (wanted.run_path) {
    std::fprintf(stderr, "epochmeter: %s\nnext: epochmeter report %s\n", wanted.run_path->c_str(),
                 wanted.run_path->c_str());
  }
  return CodeOf(arguments, *result);
}

int RunLog(const Arguments& arguments) {
  const base::Result<Wanted> wanted = WantedOf(arguments);
  if (!wanted.ok()) {
    const bool usage = wanted.error().code == kUsageError;
    return Fail(arguments, wanted.error(), usage ? kExitUsage : kExitUnreadable);
  }
  const bool rows = exporting::MakeLogRowWriter(wanted->format, std::cout) != nullptr;
  return rows ? WriteLogFile(arguments, wanted->job, wanted->format, wanted->path)
              : WriteSummary(arguments, *wanted);
}

}  // namespace

const Command kLogCommand = {
    .name = "log",
    .summary = "what a training's own output tells: progress, speed, loss, failures",
    .usage =
        "[flags] FILE|FOLDER|PATTERN|-...\n\n"
        "Reads the logs of any training without being told their format. Several files are those\n"
        "of one job (workerlog.0, workerlog.1, ...): they are told apart by rank and name, and\n"
        "their rows come in the order of time where all records have one. Those that a rotation\n"
        "made (train.log, train.log.1, train.log.2.gz) are one log. Folders are read with all\n"
        "below them but for what is no log; gzip and zstd are known by their bytes.",
    .examples =
        "  epochmeter log train.log\n"
        "  epochmeter log log/workerlog.* --json\n"
        "  epochmeter log --follow train.log\n"
        "  kubectl logs -f train-0 | epochmeter log --follow -\n"
        "  epochmeter log train.log -f csv -o train.csv\n"
        "  epochmeter log train.log -o train.emr && epochmeter report train.emr\n",
    .flags = kFlags,
    .min_positionals = 1,
    .max_positionals = -1,
    .Run = RunLog};

}  // namespace epochmeter::cli
