// SPDX-License-Identifier: Apache-2.0
// dump, assemble, recover, version: the commands about run files as files.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "base/file.h"
#include "base/json_writer.h"
#include "base/strings.h"
#include "base/version.h"
#include "cli/open_run.h"
#include "cli/verbs.h"
#include "runfile/dump.h"
#include "runfile/recover.h"
#include "runfile/run_reader.h"

namespace epochmeter::cli {
namespace {

constexpr FlagSpec kOutputFlags[] = {
    {.name = "output", .short_name = 'o', .value_name = "PATH", .help = "file [stdout]"},
};

base::Result<std::string> ReadInput(const std::string& path) {
  struct stat info {};
  if (path != "-" && ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return base::Error{.what = "not a file",
                       .where = path,
                       .why = "",
                       .what_to_do = "give a run file, or - for stdin"};
  }
  if (path == "-") return base::ReadFd(STDIN_FILENO, "stdin", size_t{1} << 32);
  return base::ReadFile(path, size_t{1} << 32);
}

// Writes `bytes` where -o says; with --json, tells what was written.
int Deliver(const Arguments& arguments, const std::string& bytes) {
  const std::optional<std::string> path = arguments.Value("output");
  const base::Result<std::unique_ptr<Output>> output =
      Output::Open(path, arguments.positionals.front());
  if (!output.ok()) return Fail(arguments, output.error(), kExitUnreadable);
  output.value()->stream() << bytes;
  if (const base::Result<> closed = output.value()->Close(); !closed.ok()) {
    return Fail(arguments, closed.error(), kExitUnreadable);
  }
  if (arguments.json() && path && *path != "-") {
    base::JsonWriter json;
    json.BeginObject().Field("input", arguments.positionals.front()).Field("output", *path);
    json.Field("bytes", static_cast<uint64_t>(bytes.size()));
    PrintJson(json.EndObject().text());
  }
  return kExitOk;
}

// {"lines": [...]}: the text of dump, for --json without a file to write it to.
void PrintDumpAsJson(const std::string& text) {
  base::JsonWriter json;
  json.BeginObject().Key("lines").BeginArray();
  for (const std::string_view line : base::Split(text, '\n')) {
    if (!line.empty()) json.String(line);
  }
  PrintJson(json.EndArray().EndObject().text());
}

int RunDump(const Arguments& arguments) {
  const base::Result<std::string> bytes = ReadInput(arguments.positionals.front());
  if (!bytes.ok()) return Fail(arguments, bytes.error(), kExitUnreadable);
  if (arguments.json() && arguments.Value("output").value_or("-") == "-") {
    PrintDumpAsJson(runfile::Dump(*bytes));
    return kExitOk;
  }
  return Deliver(arguments, runfile::Dump(*bytes));
}

int RunAssemble(const Arguments& arguments) {
  const std::optional<std::string> path = arguments.Value("output");
  if ((!path || *path == "-") && ::isatty(STDOUT_FILENO) != 0) {
    return Fail(arguments,
                {.what = "a run file is not for terminals",
                 .where = "",
                 .why = "",
                 .what_to_do = "give -o PATH"},
                kExitUsage);
  }
  const base::Result<std::string> text = ReadInput(arguments.positionals.front());
  if (!text.ok()) return Fail(arguments, text.error(), kExitUnreadable);
  const base::Result<std::string> bytes = runfile::Assemble(*text);
  if (!bytes.ok()) return Fail(arguments, bytes.error(), kExitUnreadable);
  return Deliver(arguments, *bytes);
}

void TellRecovery(const runfile::Recovery& recovery, const runfile::Verification& check,
                  const std::string& path) {
  if (recovery.already_finished) {
    std::fprintf(stderr, "epochmeter: %s ended in order, nothing to recover\n", path.c_str());
  } else {
    std::fprintf(stderr, "epochmeter: %s: %llu records taken from the tail\n", path.c_str(),
                 static_cast<unsigned long long>(recovery.recovered_records));
  }
  if (!recovery.saved_path.empty()) {
    std::fprintf(stderr, "  what was cut off is kept in %s\n", recovery.saved_path.c_str());
  }
  for (const model::Loss& loss : check.losses) {
    std::fprintf(stderr, "  lost: %s %llu %s\n", loss.kind.c_str(),
                 static_cast<unsigned long long>(loss.count), loss.detail.c_str());
  }
}

int RunRecover(const Arguments& arguments) {
  const std::string& path = arguments.positionals.front();
  const base::Result<runfile::Recovery> recovery = runfile::RecoverRun(path);
  if (!recovery.ok()) return Fail(arguments, recovery.error(), kExitUnreadable);
  const base::Result<runfile::Verification> check = runfile::VerifyRun(path);
  if (!check.ok()) return Fail(arguments, check.error(), kExitUnreadable);
  if (!arguments.json()) {
    TellRecovery(*recovery, *check, path);
    return kExitOk;
  }
  base::JsonWriter json;
  json.BeginObject().Field("run", path).Field("already_finished", recovery->already_finished);
  json.Field("saved_path", recovery->saved_path);
  json.Field("recovered_records", recovery->recovered_records).Field("intact", check->Intact());
  json.Field("values", check->values).Key("losses").BeginArray();
  for (const model::Loss& loss : check->losses) {
    json.BeginObject().Field("kind", loss.kind).Field("count", loss.count);
    json.Field("detail", loss.detail).Field("help", loss.help).EndObject();
  }
  PrintJson(json.EndArray().EndObject().text());
  return kExitOk;
}

int RunVersion(const Arguments& arguments) {
  if (!arguments.json()) {
    PrintOut("epochmeter " + std::string(base::kVersion) + " (" + std::string(base::kRevision) +
             ")\n");
    return kExitOk;
  }
  base::JsonWriter json;
  json.BeginObject().Field("version", base::kVersion).Field("revision", base::kRevision);
  PrintJson(json.EndObject().text());
  return kExitOk;
}

}  // namespace

const Command kDumpCommand = {.name = "dump",
                              .summary = "a run file (or its tail) as text, one record a line",
                              .usage = "[-o PATH] FILE",
                              .examples = "  epochmeter dump run.emr | less\n",
                              .flags = kOutputFlags,
                              .min_positionals = 1,
                              .max_positionals = 1,
                              .Run = RunDump};

const Command kAssembleCommand = {.name = "assemble",
                                  .summary = "the text of dump back into the same bytes",
                                  .usage = "-o PATH TEXT",
                                  .examples = "  epochmeter assemble run.txt -o run.emr\n",
                                  .flags = kOutputFlags,
                                  .min_positionals = 1,
                                  .max_positionals = 1,
                                  .Run = RunAssemble};

const Command kRecoverCommand = {.name = "recover",
                                 .summary = "close the file of a recorder that died",
                                 .usage = "RUN",
                                 .examples = "  epochmeter recover run.emr\n",
                                 .flags = {},
                                 .min_positionals = 1,
                                 .max_positionals = 1,
                                 .Run = RunRecover};

const Command kVersionCommand = {.name = "version",
                                 .summary = "version and build",
                                 .usage = "",
                                 .examples = "",
                                 .flags = {},
                                 .Run = RunVersion};

}  // namespace epochmeter::cli
