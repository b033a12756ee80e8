// SPDX-License-Identifier: Apache-2.0
#include "cli/many_runs.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "base/json_writer.h"
#include "base/strings.h"
#include "cli/config_file.h"
#include "cli/open_run.h"
#include "cli/text_options.h"
#include "diagnose/run_row.h"
#include "export/run_rows.h"
#include "render/run_table.h"
#include "runfile/run_reader.h"

namespace epochmeter::cli {
namespace {

using model::RunRow;

bool IsFolder(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// The run files of the places, each once, in their order; of a folder the newest first.
base::Result<std::vector<std::string>> FilesOf(const Arguments& arguments,
                                               const std::vector<std::string>& places) {
  std::vector<std::string> files;
  for (const std::string& place : places) {
    if (IsFolder(place)) {
      EPM_ASSIGN(const std::vector<FoundRun> found, FindRuns(place));
      for (const FoundRun& run : found) files.push_back(run.path);
      continue;
    }
    Arguments one = arguments;
    one.positionals = {place};
    const base::Result<std::string> path = RunPath(one);
    // What is not there is told in the table, too.
    files.push_back(path.ok() ? *path : place);
  }
  if (files.empty()) {
    return base::Error{.what = "no run",
                       .where = base::Join(places, ", "),
                       .why = "",
                       .what_to_do = "record one with 'epochmeter run -- COMMAND'"};
  }
  return files;
}

RunRow RowOfFile(const std::string& path, const diagnose::ReportOptions& options) {
  RunRow row;
  base::Result<model::Run> run = runfile::OpenRun(path);
  if (run.ok()) {
    row = diagnose::RowOf(*run, diagnose::BuildReport(*run, options));
    if (!run->end && IsBeingWritten(path)) row.state = "running";
  } else {
    row.error = run.error().Message();
  }
  row.path = path;
  return row;
}

// On a terminal, where it takes a while.
void ShowProgress(size_t done, size_t all) {
  constexpr size_t kWorthIt = 50, kStep = 10;
  if (all < kWorthIt || (done % kStep != 0 && done != all) || ::isatty(STDERR_FILENO) == 0) return;
  const std::string text =
      done == all ? "\r\033[K" : fmt::format("\repochmeter: {} of {} runs", done, all);
  std::fputs(text.c_str(), stderr);
}

struct ManyRuns {
  std::vector<RunRow> rows;
  std::vector<model::RunProfile> profiles;
};

using RenderMany = std::string (*)(const std::vector<RunRow>&,
                                   const std::vector<model::RunProfile>&,
                                   const render::TextOptions&);

base::Result<> WriteMany(const Arguments& arguments, const ManyRuns& many,
                         const std::string& format, std::ostream& out) {
  if (format == "json") {
    base::JsonWriter json;
    exporting::WriteRunRows(many.rows, many.profiles, json);
    out << JsonEnvelope(json.text(), {}) << '\n';
    return {};
  }
  if (format == "csv") return exporting::WriteRunRowsCsv(many.rows, out);
  const bool markdown = format == "md" || format == "markdown";
  if (!markdown && format != "text" && format != "txt") {
    return base::Error{.what = "many runs have no format " + format,
                       .where = "",
                       .why = "",
                       .what_to_do = "use text, md, json or csv, or name one run",
                       .code = kUsageError};
  }
  EPM_ASSIGN(const render::TextOptions options, MakeTextOptions(arguments));
  const RenderMany render = markdown ? render::RenderRunsMarkdown : render::RenderRuns;
  out << render(many.rows, many.profiles, options);
  return {};
}

// An output that is one of the inputs would destroy it.
base::Result<> CheckOutput(const std::optional<std::string>& output,
                           const std::vector<RunRow>& rows) {
  if (!output || *output == "-") return {};
  const bool is_run = std::any_of(rows.begin(), rows.end(), [&](const RunRow& row) {
    std::error_code error;
    return std::filesystem::equivalent(*output, row.path, error) ||
           std::filesystem::equivalent(*output, row.path + ".tail", error);
  });
  if (!is_run) return {};
  return base::Error{.what = "refusing to write over a run that is being read",
                     .where = *output,
                     .why = "",
                     .what_to_do = "give another path with -o"};
}

base::Result<> Write(const Arguments& arguments, const ManyRuns& many) {
  const std::string format = arguments.Value("format").value_or(arguments.json() ? "json" : "text");
  const std::optional<std::string> path = arguments.Value("output");
  EPM_TRY(CheckOutput(path, many.rows));
  std::ostringstream text;
  EPM_TRY(WriteMany(arguments, many, format, text));
  EPM_ASSIGN(const auto output, Output::Open(path, many.rows.front().path));
  output->stream() << text.str();
  return output->Close();
}

int FailAs(const Arguments& arguments, const base::Error& error) {
  return Fail(arguments, error, error.code == kUsageError ? kExitUsage : kExitUnreadable);
}

}  // namespace

bool NameManyRuns(const std::vector<std::string>& places) {
  return places.size() > 1 || (places.size() == 1 && IsFolder(places.front()));
}

int ReportManyRuns(const Arguments& arguments, const std::vector<std::string>& places) {
  const base::Result<diagnose::ReportOptions> options = LoadReportOptions(arguments);
  if (!options.ok()) return FailAs(arguments, options.error());
  const std::string key = arguments.Value("sort").value_or("started");
  ManyRuns many;
  if (!diagnose::SortRows(key, &many.rows)) {
    std::vector<std::string> keys;
    for (const std::string_view known : diagnose::RunSortKeys()) keys.emplace_back(known);
    return Fail(arguments,
                {.what = "unknown --sort " + key,
                 .where = "",
                 .why = "",
                 .what_to_do = "use " + base::Join(keys, ", ")},
                kExitUsage);
  }
  const base::Result<std::vector<std::string>> files = FilesOf(arguments, places);
  if (!files.ok()) return FailAs(arguments, files.error());
  for (const std::string& path : *files) {
    many.rows.push_back(RowOfFile(path, *options));
    ShowProgress(many.rows.size(), files->size());
  }
  diagnose::SortRows(key, &many.rows);
  many.profiles = diagnose::ProfilesOf(many.rows);
  const base::Result<> written = Write(arguments, many);
  return written.ok() ? kExitOk : FailAs(arguments, written.error());
}

}  // namespace epochmeter::cli
