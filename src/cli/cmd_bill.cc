// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/json_writer.h"
#include "base/strings.h"
#include "cli/config_file.h"
#include "cli/open_run.h"
#include "cli/text_options.h"
#include "cli/verbs.h"
#include "diagnose/bill.h"
#include "export/bill_json.h"
#include "export/exporters.h"
#include "render/bill_text.h"
#include "runfile/run_reader.h"

namespace epochmeter::cli {
namespace {

constexpr FlagSpec kFlags[] = {
    {.name = "format", .short_name = 'f', .value_name = "NAME", .help = "text, csv or json [text]"},
    {.name = "output", .short_name = 'o', .value_name = "PATH", .help = "file [stdout]"},
    {.name = "by",
     .value_name = "WHAT",
     .help = "epoch, phase, gpu or rank: the lines under the sums, all of them"},
    {.name = "rates",
     .value_name = "FILE",
     .help = "prices, energy and carbon, as in a settings file"},
    kConfigFlag,
    {.name = "dir", .value_name = "FOLDER", .help = "folder of runs [epochmeter-runs]"},
    kLangFlag,
    kColorFlag,
    kAsciiFlag,
    {.name = "strict",
     .value_name = "",
     .help = "end with 4 when parts of the file were lost",
     .kind = FlagKind::kSwitch},
};

struct Wanted {
  std::string format, by;
  diagnose::ReportOptions report;
  render::TextOptions text;
};

base::Result<Wanted> WantedOf(const Arguments& arguments) {
  Wanted wanted;
  wanted.format = arguments.Value("format").value_or(arguments.json() ? "json" : "text");
  if (wanted.format != "text" && wanted.format != "csv" && wanted.format != "json") {
    return UsageError("unknown format " + wanted.format, "use text, csv or json");
  }
  wanted.by = arguments.Value("by").value_or("");
  constexpr std::string_view kBy[] = {"", "epoch", "phase", "gpu", "rank"};
  if (std::find(std::begin(kBy), std::end(kBy), wanted.by) == std::end(kBy)) {
    return UsageError("unknown --by " + wanted.by, "use epoch, phase, gpu or rank");
  }
  EPM_ASSIGN(wanted.report, LoadReportOptions(arguments));
  EPM_ASSIGN(wanted.text, MakeTextOptions(arguments));
  return wanted;
}

base::Result<> WriteRun(const Wanted& wanted, const model::Run& run, bool first, Output& output) {
  const model::Report report = diagnose::BuildReport(run, wanted.report);
  if (wanted.format == "text") {
    output.stream() << render::RenderBill(run, report, wanted.text, wanted.by);
    return {};
  }
  const exporting::ExporterDef* exporter =
      exporting::FindExporter(exporting::Subject::kBill, wanted.format);
  return exporter->Write(run, report, {.by = wanted.by, .without_header = !first}, output.stream());
}

int Finish(const Arguments& arguments, base::Result<> written, Output& output, int code) {
  if (output.reader_gone()) return kExitOk;
  if (written.ok()) written = output.Close();
  return written.ok() ? code : Fail(arguments, written.error(), kExitUnreadable);
}

int BillOfRun(const Arguments& arguments, const Wanted& wanted) {
  const base::Result<OpenedRun> opened = OpenNamedRun(arguments);
  if (!opened.ok()) return Fail(arguments, opened.error(), kExitUnreadable);
  const auto output = Output::Open(arguments.Value("output"), opened->path);
  if (!output.ok()) return Fail(arguments, output.error(), kExitUnreadable);
  base::Result<> written = WriteRun(wanted, opened->run, true, **output);
  return Finish(arguments, std::move(written), **output, ExitCodeOf(arguments, opened->run));
}

// Of many runs one is in memory at a time; of each its bill is kept.
struct ManyBills {
  std::vector<render::FileBill> files;
  model::BillLine all;
};

ManyBills BillsOf(const std::vector<FoundRun>& found, const Wanted& wanted, Output* csv) {
  ManyBills many;
  std::vector<const model::Bill*> bills;
  bool first = true;  // the header of csv comes with the first that can be read
  for (const FoundRun& file : found) {
    many.files.push_back({.name = file.run_id});
    const base::Result<model::Run> run = runfile::OpenRun(file.path);
    if (!run.ok()) {
      many.files.back().error = run.error().Message();
      std::fputs(("epochmeter: " + run.error().Message() + "\n").c_str(), stderr);
    } else if (csv != nullptr) {
      const base::Result<> written = WriteRun(wanted, *run, std::exchange(first, false), *csv);
      if (!written.ok()) many.files.back().error = written.error().Message();
    } else {
      many.files.back().bill = diagnose::BuildReport(*run, wanted.report).bill;
    }
  }
  for (const render::FileBill& file : many.files) {
    if (file.bill) bills.push_back(&*file.bill);
  }
  many.all = diagnose::SumOfBills(bills);
  return many;
}

std::string ManyAsJson(const std::vector<FoundRun>& found, const ManyBills& many) {
  base::JsonWriter json;
  json.BeginObject().Key("runs").BeginArray();
  for (size_t i = 0; i < found.size(); ++i) {
    json.BeginObject().Field("path", found[i].path).Field("run_id", found[i].run_id);
    json.Key("error");
    many.files[i].error.empty() ? json.Null() : json.String(many.files[i].error);
    json.Key("bill");
    if (many.files[i].bill) {
      exporting::WriteBill(*many.files[i].bill, json);
    } else {
      json.Null();
    }
    json.EndObject();
  }
  json.EndArray().Key("total").BeginObject();
  exporting::WriteBillSums(many.all, json);
  return json.EndObject().EndObject().Take();
}

int BillOfFolder(const Arguments& arguments, const Wanted& wanted, const std::string& folder) {
  const base::Result<std::vector<FoundRun>> found = FindRuns(folder);
  if (!found.ok()) return Fail(arguments, found.error(), kExitUnreadable);
  if (found->empty()) {
    return Fail(arguments,
                {.what = "no run",
                 .where = folder,
                 .why = "",
                 .what_to_do = "record one with 'epochmeter run -- COMMAND'"},
                kExitUnreadable);
  }
  const std::optional<std::string> path = arguments.Value("output");
  if (path && (base::EndsWith(*path, ".emr") || base::EndsWith(*path, ".emr.tail"))) {
    return Fail(arguments,
                {.what = "refusing to write a bill over a run file",
                 .where = *path,
                 .why = "",
                 .what_to_do = "give another path with -o"},
                kExitUnreadable);
  }
  const auto output = Output::Open(path, folder);
  if (!output.ok()) return Fail(arguments, output.error(), kExitUnreadable);
  const ManyBills many = BillsOf(*found, wanted, wanted.format == "csv" ? output->get() : nullptr);
  if (wanted.format == "text") {
    (*output)->stream() << render::RenderBills(many.files, many.all, wanted.report.rates.currency,
                                               wanted.text);
  } else if (wanted.format == "json") {
    (*output)->stream() << JsonEnvelope(ManyAsJson(*found, many)) << '\n';
  }
  const bool lost = std::any_of(many.files.begin(), many.files.end(),
                                [](const render::FileBill& file) { return !file.error.empty(); });
  const int code = lost && arguments.Has("strict") ? kExitPartial : kExitOk;
  return Finish(arguments, {}, **output, code);
}

int RunBill(const Arguments& arguments) {
  const base::Result<Wanted> wanted = WantedOf(arguments);
  if (!wanted.ok()) {
    const bool usage = wanted.error().code == kUsageError;
    return Fail(arguments, wanted.error(), usage ? kExitUsage : kExitUnreadable);
  }
  if (!arguments.positionals.empty()) {
    const std::string& given = arguments.positionals.front();
    struct stat info {};
    if (::stat(given.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
      return BillOfFolder(arguments, *wanted, given);
    }
  }
  return BillOfRun(arguments, *wanted);
}

}  // namespace

const Command kBillCommand = {.name = "bill",
                              .summary = "what GPU time and energy went to, and what they cost",
                              .usage = "[flags] [RUN | FOLDER]",
                              .examples =
                                  "  epochmeter bill\n"
                                  "  epochmeter bill run.emr --by epoch --rates prices.toml\n"
                                  "  epochmeter bill epochmeter-runs -f csv -o bill.csv\n",
                              .flags = kFlags,
                              .max_positionals = 1,
                              .Run = RunBill};

}  // namespace epochmeter::cli
