// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include "base/strings.h"
#include "cli/config_file.h"
#include "cli/many_runs.h"
#include "cli/open_run.h"
#include "cli/report_pictures.h"
#include "cli/text_options.h"
#include "cli/verbs.h"
#include "diagnose/report_builder.h"
#include "export/exporters.h"
#include "render/markdown.h"
#include "render/text.h"

namespace epochmeter::cli {
namespace {

constexpr FlagSpec kDirFlag = {
    .name = "dir", .value_name = "FOLDER", .help = "folder of runs [epochmeter-runs]"};
constexpr FlagSpec kStrictFlag = {.name = "strict",
                                  .value_name = "",
                                  .help = "end with 4 when parts of the file were lost",
                                  .kind = FlagKind::kSwitch};
constexpr FlagSpec kAllGpusFlag = {.name = "all-gpus",
                                   .value_name = "",
                                   .help =
                                       "show GPUs that are not the job's, too, as far "
                                       "as run --all-gpus recorded them",
                                   .kind = FlagKind::kSwitch};
constexpr FlagSpec kAllEpochsFlag = {.name = "all-epochs",
                                     .value_name = "",
                                     .help = "show every epoch of a long run in the text",
                                     .kind = FlagKind::kSwitch};
constexpr FlagSpec kAllRulesFlag = {.name = "all-rules",
                                    .value_name = "",
                                    .help = "say of each rule that could not judge why",
                                    .kind = FlagKind::kSwitch};
constexpr FlagSpec kReportFlags[] = {
    {.name = "format",
     .short_name = 'f',
     .value_name = "NAMES",
     .help = "text, md, html, svg, png, json, jsonl, csv, findings (csv of them); several by comma "
             "[text]"},
    {.name = "output",
     .short_name = 'o',
     .value_name = "PATH",
     .help = "file, or stem for several formats [stdout]"},
    kDirFlag,
    kLangFlag,
    kColorFlag,
    kAsciiFlag,
    kAllGpusFlag,
    kChartFlag,
    kXFlag,
    kThemeFlag,
    kMaxSizeFlag,
    kNoRedactFlag,
    kAllEpochsFlag,
    kAllRulesFlag,
    kSortFlag,
    kConfigFlag,
    kStrictFlag,
};

// Those of the command line, with the run's own.
base::Result<render::TextOptions> MakeRunTextOptions(const Arguments& arguments,
                                                     const std::string& path) {
  EPM_ASSIGN(render::TextOptions options, MakeTextOptions(arguments));
  options.all_epochs = arguments.Has("all-epochs");
  options.all_rules = arguments.Has("all-rules");
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

// Pages for people, which depend on language and terminal.
using RenderPage = std::string (*)(const model::Run&, const model::Report&,
                                   const render::TextOptions&);
struct PageFormat {
  std::string_view name, extension;
  RenderPage Render;
};
constexpr PageFormat kPages[] = {{"text", "txt", render::RenderReport},
                                 {"txt", "txt", render::RenderReport},
                                 {"md", "md", render::RenderMarkdown},
                                 {"markdown", "md", render::RenderMarkdown}};

base::Result<> WriteFormat(const Arguments& arguments, const OpenedRun& opened,
                           const model::Report& report, const std::string& format, bool several) {
  for (const PageFormat& page : kPages) {
    if (format != page.name) continue;
    EPM_ASSIGN(const render::TextOptions options, MakeRunTextOptions(arguments, opened.path));
    EPM_ASSIGN(const auto output,
               Output::Open(OutputPath(arguments, page.extension, several), opened.path));
    output->stream() << page.Render(opened.run, report, options);
    return output->Close();
  }
  if (IsPictureFormat(format)) {
    return WritePicture(arguments, opened, report, format, OutputPath(arguments, format, several));
  }
  const exporting::ExporterDef* exporter =
      exporting::FindExporter(exporting::Subject::kReport, format);
  if (exporter == nullptr) {
    return base::Error{.what = "unknown format " + format,
                       .where = "",
                       .why = "",
                       .what_to_do = "use text, md, html, svg, png, json, jsonl, csv or findings",
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
  const base::Result<diagnose::ReportOptions> settings = LoadReportOptions(arguments);
  if (!settings.ok()) return Fail(arguments, settings.error(), kExitUsage);
  const model::Report report = diagnose::BuildReport(opened->run, *settings);
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

int RunReportOfAny(const Arguments& arguments) {
  return NameManyRuns(arguments.positionals) ? ReportManyRuns(arguments, arguments.positionals)
                                             : RunReport(arguments);
}

constexpr FlagSpec kSummaryFlags[] = {
    {.name = "one-line",
     .short_name = '1',
     .value_name = "",
     .help = "one line: end, time, main figures, verdict",
     .kind = FlagKind::kSwitch},
    kDirFlag,
    kLangFlag,
    kColorFlag,
    kAsciiFlag,
    kNoRedactFlag,
    kAllGpusFlag,
    kConfigFlag,
    kStrictFlag,
};

int RunSummary(const Arguments& arguments) {
  if (arguments.json()) return RunReport(arguments);
  const base::Result<OpenedRun> opened = OpenNamedRun(arguments);
  if (!opened.ok()) return Fail(arguments, opened.error(), kExitUnreadable);
  const base::Result<render::TextOptions> options = MakeRunTextOptions(arguments, opened->path);
  if (!options.ok()) return Fail(arguments, options.error(), kExitUsage);
  const base::Result<diagnose::ReportOptions> settings = LoadReportOptions(arguments);
  if (!settings.ok()) return Fail(arguments, settings.error(), kExitUsage);
  const model::Report report = diagnose::BuildReport(opened->run, *settings);
  PrintOut(arguments.Has("one-line") ? render::RenderLine(opened->run, report, *options)
                                     : render::RenderSummary(opened->run, report, *options));
  return ExitCodeOf(arguments, opened->run);
}

}  // namespace

const Command kReportCommand = {
    .name = "report",
    .summary = "what is wrong with a run, epoch by epoch; or many runs in a table",
    .usage = "[flags] [RUN | FOLDER | RUN RUN...]",
    .examples =
        "  epochmeter report\n  epochmeter report run.emr -f text,json,csv -o run\n"
        "  epochmeter report epochmeter-runs --sort waste\n",
    .flags = kReportFlags,
    .max_positionals = -1,
    .Run = RunReportOfAny};

const Command kSummaryCommand = {
    .name = "summary",
    .summary = "a run on one screen, or with -1 on one line",
    .usage = "[flags] [RUN]",
    .examples = "  epochmeter summary\n  epochmeter summary -1 run.emr\n",
    .flags = kSummaryFlags,
    .max_positionals = 1,
    .Run = RunSummary};

}  // namespace epochmeter::cli
