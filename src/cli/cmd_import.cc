// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "base/file.h"
#include "base/json_writer.h"
#include "base/strings.h"
#include "base/unique_fd.h"
#include "cli/record_writer.h"
#include "cli/run_file_sink.h"
#include "cli/run_settings.h"
#include "cli/spooled_source.h"
#include "cli/verbs.h"
#include "ingest/importers.h"
#include "ingest/wall_time.h"
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
     .help = "replace an existing run file, once the source was read",
     .kind = FlagKind::kSwitch},
    {.name = "tz",
     .value_name = "ZONE",
     .help = "zone of times without one: UTC, +08:00, Asia/Shanghai [this machine's]"},
    {.name = "start",
     .value_name = "TIME",
     .help = "time of the first sample, where lines have no time or date [from the file's age]"},
    {.name = "interval",
     .value_name = "TIME",
     .help = "between samples, where lines have no time [the tool's own]"},
    {.name = "gpus",
     .value_name = "N",
     .help = "GPUs in each sample, where lines name none [found out from their times]"},
    {.name = "columns",
     .value_name = "NAMES",
     .help = "fields of a CSV without header, as given to --query-gpu"},
};

std::string DefaultPath(const Arguments& arguments, std::string_view source) {
  while (base::EndsWith(source, "/")) source.remove_suffix(1);
  const size_t slash = source.rfind('/');
  const std::string_view name = source.substr(slash == std::string_view::npos ? 0 : slash + 1);
  return RunsFolder(arguments) + "/" + std::string(name) + ".emr";
}

// Where the run is written until it is whole: an old run of the name stays until then.
std::string BesidePath(const std::string& path) {
  return path + ".importing-" + std::to_string(::getpid());
}

base::Error Exists(const std::string& path) {
  return {.what = "the run file exists already",
          .where = path,
          .why = "",
          .what_to_do = "give another --output, or --force to replace it"};
}

// Puts the finished run in the place of an old one, unless somebody is writing that.
base::Result<> Replace(const std::string& beside, const std::string& path) {
  EPM_ASSIGN(const auto old, runfile::RunWriter::Create(path, {.force = true}));
  EPM_TRY(old->Discard());
  if (::rename(beside.c_str(), path.c_str()) == 0) return {};
  return base::SystemError("cannot replace the run file", path, errno, "it is whole in " + beside);
}

base::Result<ingest::ImportSummary> WriteRun(const ingest::ImporterDef& importer,
                                             const std::string& source,
                                             const ingest::ImportOptions& options,
                                             const std::string& path) {
  EPM_ASSIGN(const auto writer, runfile::RunWriter::Create(path, {}));
  TellKeptTail(writer->kept_tail());
  RunFileSink sink(*writer);
  base::Result<ingest::ImportSummary> summary = importer.Import(source, options, sink);
  // The source is still there and holds it all: a file of half of it would only be in the way.
  if (!summary.ok()) {
    EPM_TRY(writer->Discard());
    return summary;
  }
  base::Result<> finished = sink.Finish();
  if (!finished.ok()) {
    EPM_TRY(writer->Discard());
    return std::move(finished).error();
  }
  return summary;
}

// Folders on the way to the file that are not there, the outermost first.
std::vector<std::string> MissingFolders(const std::string& path) {
  std::vector<std::string> missing;
  for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    std::string folder = path.substr(0, at);
    if (::access(folder.c_str(), F_OK) != 0) missing.push_back(std::move(folder));
  }
  return missing;
}

base::Result<ingest::ImportSummary> ImportInto(const ingest::ImporterDef& importer,
                                               const std::string& source,
                                               const ingest::ImportOptions& options,
                                               const std::string& path, bool force) {
  struct stat about {};
  const bool there = ::lstat(path.c_str(), &about) == 0;
  if (!there) return WriteRun(importer, source, options, path);
  if (!force || !S_ISREG(about.st_mode)) return Exists(path);
  const std::string beside = BesidePath(path);
  EPM_ASSIGN(ingest::ImportSummary summary, WriteRun(importer, source, options, beside));
  base::Result<> replaced = Replace(beside, path);
  if (replaced.ok()) return summary;
  // The old run may still be there; then the new one is only in the way.
  if (::access(path.c_str(), F_OK) == 0) ::unlink(beside.c_str());
  return std::move(replaced).error();
}

// An import that fails leaves nothing, not even the folder that was made for it.
base::Result<ingest::ImportSummary> Import(const ingest::ImporterDef& importer,
                                           const std::string& source,
                                           const ingest::ImportOptions& options,
                                           const std::string& path, bool force) {
  const std::vector<std::string> fresh = MissingFolders(path);
  if (!fresh.empty()) EPM_TRY(base::MakeDirectories(fresh.back()));
  base::Result<ingest::ImportSummary> summary = ImportInto(importer, source, options, path, force);
  for (auto folder = fresh.rbegin(); !summary.ok() && folder != fresh.rend(); ++folder) {
    if (::rmdir(folder->c_str()) != 0) break;  // somebody else has put something there
  }
  return summary;
}

std::string NamesOf(const std::vector<const ingest::ImporterDef*>& importers) {
  std::vector<std::string> names;
  for (const ingest::ImporterDef* importer : importers) names.emplace_back(importer->name);
  return base::Join(names, ", ");
}

std::string AllNames() {
  std::vector<const ingest::ImporterDef*> all;
  for (const ingest::ImporterDef& importer : ingest::Importers()) all.push_back(&importer);
  return NamesOf(all);
}

std::string WhyUnknown(const std::string& source) {
  const base::UniqueFd file(::open(source.c_str(), O_RDONLY | O_CLOEXEC));
  unsigned char magic[2] = {};
  const bool gzip = file.valid() && ::read(file.get(), magic, sizeof magic) == sizeof magic &&
                    magic[0] == 0x1f && magic[1] == 0x8b;
  return std::string("no importer recognises its first lines") +
         (gzip ? ", which were unpacked from gzip" : "");
}

// The importer of this name, or the one that recognises the source.
base::Result<const ingest::ImporterDef*> Choose(const std::optional<std::string>& name,
                                                const std::string& source) {
  if (name) {
    const ingest::ImporterDef* importer = ingest::FindImporter(*name);
    if (importer != nullptr) return importer;
    return base::Error{.what = "unknown format " + *name,
                       .where = "",
                       .why = "",
                       .what_to_do = "one of: " + AllNames(),
                       .code = kUsageError};
  }
  EPM_ASSIGN(const ingest::SourceHead head, ingest::ReadSourceHead(source));
  const auto found = ingest::RecogniseSource(head);
  if (found.size() == 1) return found[0];
  const bool none = found.empty();
  return base::Error{.what = none ? "cannot tell the format of" : "several formats fit",
                     .where = source,
                     .why = none ? WhyUnknown(source) : NamesOf(found),
                     .what_to_do = "name it: epochmeter import FORMAT FILE" +
                                   (none ? "; formats: " + AllNames() : std::string())};
}

base::Error UnknownZone(const std::string& zone) {
  return {.what = "unknown time zone " + zone,
          .where = "",
          .why = "",
          .what_to_do = "use UTC, an offset like +08:00 or a name like Asia/Shanghai",
          .code = kUsageError};
}

// The process's zone from here on: local times of the source are read in it. Nothing else of this
// command depends on it.
base::Result<> SetZone(const std::string& zone) {
  std::string value = zone;
  const bool offset = zone.size() == 6 && (zone[0] == '+' || zone[0] == '-') && zone[3] == ':';
  if (offset) {
    // POSIX counts westward, and takes no colon in a name.
    const std::string hours = zone.substr(1, 2);
    const std::string minutes = zone.substr(4, 2);
    const bool digits = base::ParseUint(hours).value_or(99) <= 14 && base::ParseUint(minutes);
    if (!digits) return UnknownZone(zone);
    value = "<" + zone.substr(0, 1) + hours + minutes + ">" + (zone[0] == '+' ? "-" : "+") + hours +
            ":" + minutes;
  } else if (zone != "UTC" && (zone.empty() || zone[0] == '/' ||
                               ::access(("/usr/share/zoneinfo/" + zone).c_str(), R_OK) != 0)) {
    return UnknownZone(zone);
  }
  ::setenv("TZ", value.c_str(), 1);
  ::tzset();
  return {};
}

base::Error BadFlag(const std::string& flag, const std::string& value, const std::string& like) {
  return {.what = "cannot read --" + flag + " " + value,
          .where = "",
          .why = "",
          .what_to_do = "write it like " + like,
          .code = kUsageError};
}

base::Result<ingest::ImportOptions> ReadOptions(const Arguments& arguments) {
  ingest::ImportOptions options;
  if (const auto zone = arguments.Value("tz")) EPM_TRY(SetZone(*zone));
  if (const auto start = arguments.Value("start")) {
    options.start_wall_ns = ingest::LocalClock().Parse(*start);
    if (!options.start_wall_ns) return BadFlag("start", *start, "2026-08-24T10:11:12");
  }
  constexpr double kDaySeconds = 86400;
  if (const auto interval = arguments.Value("interval")) {
    options.interval_s = base::ParseDurationSeconds(*interval);
    const bool good = options.interval_s && *options.interval_s > 0;
    if (!good || *options.interval_s > kDaySeconds) return BadFlag("interval", *interval, "500ms");
  }
  if (const auto gpus = arguments.Value("gpus")) {
    const auto count = base::ParseInt(*gpus);
    if (!count || *count < 1 || *count > 1024) return BadFlag("gpus", *gpus, "8");
    options.gpus = static_cast<int>(*count);
  }
  options.columns = arguments.Value("columns").value_or("");
  return options;
}

void Print(const Arguments& arguments, const ingest::ImporterDef& importer, const std::string& path,
           const ingest::ImportSummary& summary) {
  if (arguments.json()) {
    base::JsonWriter json;
    json.BeginObject().Field("run", path).Field("format", importer.name);
    json.Field("samples", summary.samples).Field("events", summary.events);
    json.Field("log_lines", summary.log_lines).Field("bad_lines", summary.bad_lines);
    PrintJson(json.EndObject().text(), summary.notes);
    return;
  }
  std::fprintf(stderr, "epochmeter: %s: %s, %llu sample instants, %llu events, %llu bad lines\n",
               path.c_str(), std::string(importer.name).c_str(),
               static_cast<unsigned long long>(summary.samples),
               static_cast<unsigned long long>(summary.events),
               static_cast<unsigned long long>(summary.bad_lines));
  for (const std::string& note : summary.notes) {
    std::fprintf(stderr, "epochmeter: %s\n", note.c_str());
  }
}

int RunImport(const Arguments& arguments) {
  const bool named = arguments.positionals.size() > 1;
  const auto options = ReadOptions(arguments);
  if (!options.ok()) return Fail(arguments, options.error(), kExitUsage);
  const auto source = SpooledSource::Make(arguments.positionals.back());
  if (!source.ok()) return Fail(arguments, source.error(), kExitUnreadable);
  const auto importer =
      Choose(named ? std::optional(arguments.positionals[0]) : std::nullopt, source->path());
  if (!importer.ok()) {
    const bool usage = importer.error().code == kUsageError;
    return Fail(arguments, source->Renamed(importer.error()), usage ? kExitUsage : kExitUnreadable);
  }
  const std::string path =
      arguments.Value("output").value_or(DefaultPath(arguments, source->path()));
  const base::Result<ingest::ImportSummary> summary =
      Import(**importer, source->path(), *options, path, arguments.Has("force"));
  if (!summary.ok()) return Fail(arguments, source->Renamed(summary.error()), kExitUnreadable);
  Print(arguments, **importer, path, *summary);
  return kExitOk;
}

}  // namespace

const Command kImportCommand = {
    .name = "import",
    .summary = "make a run file of what another tool recorded",
    .usage =
        "[flags] [FORMAT] SOURCE\n\n"
        "SOURCE is a file, a folder, or - for stdin; text files may be gzip.\n\n"
        "The format is recognised by the first lines where it is not given:\n"
        "  nvidia-smi-csv    nvidia-smi --query-gpu=... --format=csv -l 1\n"
        "  nvidia-smi-apps   nvidia-smi --query-compute-apps=... --format=csv -l 1\n"
        "  nvidia-smi-dmon   nvidia-smi dmon or pmon, best with -o DT\n"
        "  nvidia-smi-table  the table of plain nvidia-smi (-l 1) or nvitop -1\n"
        "  dcgmi-dmon        dcgmi dmon -e IDS (it has no times: --start)\n"
        "  paddle-gpu-log    the *.gpu.log that paddle.distributed.launch writes\n"
        "  nvitop            a CSV of nvitop's ResourceMetricCollector\n"
        "  wandb             an offline run of W&B (offline-run-... or *.wandb)\n"
        "  trackio           rows of Trackio's tables as JSON (sqlite3 -json PROJECT.db ...);\n"
        "                    its .db and .parquet files are not read\n"
        "  recording         a folder with samples.jsonl.gz, events.rank<r>.jsonl.gz, train.log",
    .examples =
        "  epochmeter import gpu.csv -o run.emr\n"
        "  zstdcat gpu.csv.zst | epochmeter import - -o run.emr\n"
        "  epochmeter import --tz UTC --start 2026-08-24T10:00:00 dcgmi.txt\n",
    .flags = kFlags,
    .min_positionals = 1,
    .max_positionals = 2,
    .Run = RunImport};

}  // namespace epochmeter::cli
