// SPDX-License-Identifier: Apache-2.0
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/strings.h"
#include "cli/open_run.h"
#include "cli/verbs.h"
#include "diagnose/report_builder.h"
#include "export/exporters.h"
#include "render/text.h"

namespace epochmeter::cli {
namespace {

constexpr FlagSpec kDirFlag = {
    .name = "dir", .value_name = "FOLDER", .help = "folder of runs [epochmeter-runs]"};
constexpr FlagSpec kLangFlag = {.name = "lang", .value_name = "LANG", .help = "en or zh [en]"};
constexpr FlagSpec kColorFlag = {
    .name = "color", .value_name = "WHEN", .help = "auto, always or never [auto]"};
constexpr FlagSpec kAsciiFlag = {.name = "ascii",
                                 .value_name = "",
                                 .help = "no characters beyond ASCII",
                                 .kind = FlagKind::kSwitch};
constexpr FlagSpec kStrictFlag = {.name = "strict",
                                  .value_name = "",
                                  .help = "end with 4 when parts of the file were lost",
                                  .kind = FlagKind::kSwitch};
constexpr FlagSpec kReportFlags[] = {
    {.name = "format",
     .short_name = 'f',
     .value_name = "NAMES",
     .help = "text, json, csv, jsonl; several by comma [text]"},
    {.name = "output",
     .short_name = 'o',
     .value_name = "PATH",
     .help = "file, or stem for several formats [stdout]"},
    kDirFlag,
    kLangFlag,
    kColorFlag,
    kAsciiFlag,
    kStrictFlag,
};

std::string Getenv(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// --color, then NO_COLOR, CLICOLOR_FORCE / FORCE_COLOR, CLICOLOR=0, TERM=dumb, then the terminal.
bool UseColor(const Arguments& arguments, bool to_stdout) {
  const std::string when = arguments.Value("color").value_or("auto");
  if (when == "always") return true;
  if (when == "never" || !Getenv("NO_COLOR").empty()) return false;
  for (const char* force : {"CLICOLOR_FORCE", "FORCE_COLOR"}) {
    const std::string value = Getenv(force);
    if (!value.empty() && value != "0") return true;
  }
  if (Getenv("CLICOLOR") == "0" || Getenv("TERM") == "dumb") return false;
  return to_stdout && ::isatty(STDOUT_FILENO) != 0;
}

bool Utf8Terminal() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = base::ToLowerAscii(Getenv(name));
    if (!value.empty())
      return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

// Of the terminal; elsewhere $COLUMNS, or what a wide page needs.
size_t PageWidth(bool to_stdout) {
  constexpr size_t kLeast = 60, kElsewhere = 200;
  winsize size{};
  if (to_stdout && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return std::max<size_t>(size.ws_col, kLeast);
  }
  const auto columns = base::ParseUint(Getenv("COLUMNS"));
  return columns ? std::max<size_t>(*columns, kLeast) : kElsewhere;
}

base::Result<render::TextOptions> MakeTextOptions(const Arguments& arguments,
                                                  const std::string& path) {
  render::TextOptions options;
  const std::string language = arguments.Value("lang").value_or("en");
  if (language != "en" && language != "zh") {
    return base::Error{.what = "unknown language " + language,
                       .where = "",
                       .why = "",
                       .what_to_do = "--lang en or --lang zh",
                       .code = kUsageError};
  }
  options.language = language == "zh" ? render::Language::kChinese : render::Language::kEnglish;
  const bool to_stdout = arguments.Value("output").value_or("-") == "-";
  options.color = UseColor(arguments, to_stdout);
  options.width = PageWidth(to_stdout);
  options.ascii = arguments.Has("ascii") || (to_stdout && ::isatty(STDOUT_FILENO) != 0 &&
                                             !Utf8Terminal() && language == "en");
  options.files.push_back(path);
  options.live = IsBeingWritten(path);
  struct stat info {};
  if (::stat((path + ".tail").c_str(), &info) == 0) options.files.push_back(path + ".tail");
  return options;
}

// Where one of several formats goes: the path itself for one, STEM.EXT for more.
std::optional<std::string> OutputPath(const Arguments& arguments, std::string_view extension,
                                      bool several) {
  std::optional<std::string> path = arguments.Value("output");
  if (!several || !path || *path == "-") return path;
  return *path + "." + std::string(extension);
}

base::Result<> WriteFormat(const Arguments& arguments, const OpenedRun& opened,
                           const model::Report& report, const std::string& format, bool several) {
  if (format == "text" || format == "txt") {
    EPM_ASSIGN(const render::TextOptions options, MakeTextOptions(arguments, opened.path));
    EPM_ASSIGN(const auto output, Output::Open(OutputPath(arguments, "txt", several), opened.path));
    output->stream() << render::RenderReport(opened.run, report, options);
    return output->Close();
  }
  const exporting::ExporterDef* exporter =
      exporting::FindExporter(exporting::Subject::kReport, format);
  if (exporter == nullptr) {
    return base::Error{.what = "unknown format " + format,
                       .where = "",
                       .why = "",
                       .what_to_do = "use text, json, csv or jsonl",
                       .code = kUsageError};
  }
  EPM_ASSIGN(const auto output,
             Output::Open(OutputPath(arguments, exporter->extension, several), opened.path));
  const base::Result<> written = exporter->Write(opened.run, report, {}, output->stream());
  if (!written.ok() && !output->reader_gone()) return written.error();
  return output->Close();
}

int RunReport(const Arguments& arguments) {
  const base::Result<OpenedRun> opened = OpenNamedRun(arguments);
  if (!opened.ok()) return Fail(arguments, opened.error(), kExitUnreadable);
  const model::Report report = diagnose::BuildReport(opened->run);
  const std::string formats =
      arguments.Value("format").value_or(arguments.json() ? "json" : "text");
  const std::vector<std::string_view> names = base::Split(formats, ',');
  for (const std::string_view name : names) {
    const base::Result<> written =
        WriteFormat(arguments, *opened, report, std::string(name), names.size() > 1);
    if (!written.ok()) {
      const bool usage = written.error().code == kUsageError;
      return Fail(arguments, written.error(), usage ? kExitUsage : kExitUnreadable);
    }
  }
  return ExitCodeOf(arguments, opened->run);
}

constexpr FlagSpec kSummaryFlags[] = {
    kDirFlag, kLangFlag, kColorFlag, kAsciiFlag, kStrictFlag,
};

int RunSummary(const Arguments& arguments) {
  if (arguments.json()) return RunReport(arguments);
  const base::Result<OpenedRun> opened = OpenNamedRun(arguments);
  if (!opened.ok()) return Fail(arguments, opened.error(), kExitUnreadable);
  const base::Result<render::TextOptions> options = MakeTextOptions(arguments, opened->path);
  if (!options.ok()) return Fail(arguments, options.error(), kExitUsage);
  const model::Report report = diagnose::BuildReport(opened->run);
  PrintOut(render::RenderSummary(opened->run, report, *options));
  return ExitCodeOf(arguments, opened->run);
}

}  // namespace

const Command kReportCommand = {
    .name = "report",
    .summary = "a run, epoch by epoch",
    .usage = "[flags] [RUN]",
    .examples = "  epochmeter report\n  epochmeter report run.emr -f text,json,csv -o run\n",
    .flags = kReportFlags,
    .max_positionals = 1,
    .Run = RunReport};

const Command kSummaryCommand = {.name = "summary",
                                 .summary = "a run in a few lines",
                                 .usage = "[flags] [RUN]",
                                 .examples = "  epochmeter summary\n",
                                 .flags = kSummaryFlags,
                                 .max_positionals = 1,
                                 .Run = RunSummary};

}  // namespace epochmeter::cli
