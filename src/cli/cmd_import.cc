// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "base/file.h"
#include "base/json_writer.h"
#include "base/strings.h"
#include "cli/run_settings.h"
#include "cli/verbs.h"
#include "ingest/importers.h"
#include "runfile/run_writer.h"

namespace epochmeter::cli {
namespace {

constexpr FlagSpec kFlags[] = {
    {.name = "output",
     .short_name = 'o',
     .value_name = "PATH",
     .help = "run file [epochmeter-runs/NAME.emr]"},
    {.name = "dir", .value_name = "FOLDER", .help = "folder of runs [epochmeter-runs]"},
    {.name = "force",
     .value_name = "",
     .help = "replace an existing run file",
     .kind = FlagKind::kSwitch},
};

// Passes records to the file, flushing now and then so that memory stays bounded; holds the end
// back, because it is what finishes the file.
class ImportSink : public model::Sink {
 public:
  explicit ImportSink(runfile::RunWriter& writer) : writer_(writer) {}
  void Write(const model::Record& record) override {
    if (const auto* end = std::get_if<model::RunEnd>(&record)) {
      end_ = *end;
      return;
    }
    writer_.Write(record);
    if (++count_ % kFlushEvery == 0 && result_.ok()) result_ = writer_.Flush();
  }
  base::Result<> Finish() {
    EPM_TRY(std::move(result_));
    return writer_.Finish(end_);
  }

 private:
  static constexpr uint64_t kFlushEvery = 20'000;
  runfile::RunWriter& writer_;
  model::RunEnd end_{.t_ns = 0, .reason = "lost", .exit_code = {}, .signal = {}};
  uint64_t count_ = 0;
  base::Result<> result_;
};

std::string DefaultPath(const Arguments& arguments, std::string_view source) {
  while (base::EndsWith(source, "/")) source.remove_suffix(1);
  const size_t slash = source.rfind('/');
  const std::string_view name = source.substr(slash == std::string_view::npos ? 0 : slash + 1);
  return RunsFolder(arguments) + "/" + std::string(name) + ".emr";
}

base::Result<ingest::ImportSummary> Import(const ingest::ImporterDef& importer,
                                           const std::string& source, const std::string& path,
                                           bool force) {
  const size_t slash = path.rfind('/');
  if (slash != std::string::npos && slash > 0) {
    EPM_TRY(base::MakeDirectories(path.substr(0, slash)));
  }
  runfile::RunWriter::Options options;
  options.force = force;
  EPM_ASSIGN(const auto writer, runfile::RunWriter::Create(path, options));
  ImportSink sink(*writer);
  base::Result<ingest::ImportSummary> summary = importer.Import(source, sink);
  // The source is still there and holds it all: a file of half of it would only be in the way.
  if (!summary.ok()) {
    EPM_TRY(writer->Discard());
    return summary;
  }
  EPM_TRY(sink.Finish());
  return summary;
}

base::Error UnknownKind(const std::string& kind) {
  std::vector<std::string> names;
  for (const ingest::ImporterDef& importer : ingest::Importers()) names.emplace_back(importer.name);
  return {.what = "unknown kind of import " + kind,
          .where = "",
          .why = "",
          .what_to_do = "one of: " + base::Join(names, ", ")};
}

int RunImport(const Arguments& arguments) {
  const std::string& kind = arguments.positionals[0];
  const std::string& source = arguments.positionals[1];
  const ingest::ImporterDef* importer = ingest::FindImporter(kind);
  if (importer == nullptr) return Fail(arguments, UnknownKind(kind), kExitUsage);
  const std::string path = arguments.Value("output").value_or(DefaultPath(arguments, source));
  const base::Result<ingest::ImportSummary> summary =
      Import(*importer, source, path, arguments.Has("force"));
  if (!summary.ok()) return Fail(arguments, summary.error(), kExitUnreadable);
  if (arguments.json()) {
    base::JsonWriter json;
    json.BeginObject().Field("run", path).Field("samples", summary->samples);
    json.Field("events", summary->events).Field("log_lines", summary->log_lines);
    json.Field("bad_lines", summary->bad_lines);
    PrintJson(json.EndObject().text());
  } else {
    std::fprintf(stderr, "epochmeter: %s: %llu sample instants, %llu events, %llu bad lines\n",
                 path.c_str(), static_cast<unsigned long long>(summary->samples),
                 static_cast<unsigned long long>(summary->events),
                 static_cast<unsigned long long>(summary->bad_lines));
  }
  return kExitOk;
}

}  // namespace

const Command kImportCommand = {.name = "import",
                                .summary = "make a run file of what another tool recorded",
                                .usage = "[flags] KIND SOURCE   (KIND: recording)",
                                .examples = "  epochmeter import recording FOLDER -o run.emr\n",
                                .flags = kFlags,
                                .min_positionals = 2,
                                .max_positionals = 2,
                                .Run = RunImport};

}  // namespace epochmeter::cli
