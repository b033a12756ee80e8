// SPDX-License-Identifier: Apache-2.0
// Hostile run files, read and taken over.
//
// frames: whatever opens has columns in order, verifies to as many values as can be read, and is
// the same bytes again after a dump and an assembly.
// recover: what could be read before can be read after, a recovered file is finished, and a second
// recovery finds nothing to do.
#include "base/check.h"
#include "fuzz/input.h"
#include "fuzz/output.h"
#include "fuzz/run_image.h"
#include "fuzz/target.h"
#include "runfile/dump.h"
#include "runfile/recover.h"
#include "runfile/run_files.h"
#include "runfile/run_reader.h"
#include "runfile/run_writer.h"

namespace epochmeter::fuzz {
namespace {

using runfile::MemoryFileSystem;

uint64_t CountValues(const model::Run& run) {
  uint64_t values = 0;
  for (size_t id = 0; id < run.series.size(); ++id) {
    const auto column = run.store->Read(static_cast<model::SeriesId>(id), {});
    if (column.ok()) values += column->t_ns.size();
  }
  return values;
}

void CheckDump(const MemoryFileSystem& files, const std::string& path) {
  if (!files.Exists(path)) return;
  const std::string bytes = files.Bytes(path);
  const auto again = runfile::Assemble(runfile::Dump(bytes));
  EPM_CHECK(again.ok()) << again.error().Message();
  EPM_CHECK(*again == bytes) << "not the same after dump and assemble";
}

struct Content {
  uint64_t values = 0;
  size_t events = 0, steps = 0, log = 0;
};

Content ContentOf(const model::Run& run) {
  Content content{.values = CountValues(run), .events = run.events.size(), .log = run.log.size()};
  for (const auto& [process, steps] : run.steps) content.steps += steps.size();
  return content;
}

void CheckNothingLost(const Content& before, MemoryFileSystem* files) {
  const auto run = runfile::OpenRun(kRunPath, files);
  EPM_CHECK(run.ok()) << run.error().Message();
  CheckStore(*run);
  const Content after = ContentOf(*run);
  EPM_CHECK(after.values >= before.values) << after.values << " of " << before.values << " values";
  EPM_CHECK(after.events >= before.events) << after.events << " of " << before.events << " events";
  EPM_CHECK(after.steps >= before.steps) << after.steps << " of " << before.steps << " steps";
  EPM_CHECK(after.log >= before.log) << after.log << " of " << before.log << " pieces of text";
}

void RecoverTwice(const Content& before, MemoryFileSystem* files) {
  if (!runfile::RecoverRun(kRunPath, files).ok()) return;
  CheckNothingLost(before, files);
  const auto verified = runfile::VerifyRun(kRunPath, files);
  EPM_CHECK(verified.ok() && verified->finished);
  const auto again = runfile::RecoverRun(kRunPath, files);
  EPM_CHECK(again.ok() && again->already_finished);
}

void ResumeAndFinish(const Content& before, MemoryFileSystem* files) {
  auto writer = runfile::RunWriter::Resume(kRunPath, {.file_system = files});
  if (!writer.ok()) return;
  (*writer)->Write(model::LogText{.t_ns = 7, .stream = 1, .text = "resumed"});
  EPM_CHECK((*writer)->Flush().ok());
  EPM_CHECK((*writer)->Finish({.t_ns = 8, .reason = "exited", .exit_code = 0, .signal = {}}).ok());
  writer->reset();
  CheckNothingLost(before, files);
}

}  // namespace

void FeedFrames(std::string_view bytes) {
  MemoryFileSystem files;
  MakeRunFiles(bytes, &files);
  const auto run = runfile::OpenRun(kRunPath, &files);
  const auto verified = runfile::VerifyRun(kRunPath, &files);
  EPM_CHECK(run.ok() == verified.ok());
  if (run.ok()) {
    CheckStore(*run);
    EPM_CHECK(CountValues(*run) == verified->values);
  }
  CheckDump(files, kRunPath);
  CheckDump(files, runfile::TailPath(kRunPath));
}

void FeedRecover(std::string_view bytes) {
  MemoryFileSystem files;
  MakeRunFiles(bytes, &files);
  Content before;
  if (const auto run = runfile::OpenRun(kRunPath, &files); run.ok()) before = ContentOf(*run);
  const bool resume = !bytes.empty() && (bytes.front() & 2) != 0;
  resume ? ResumeAndFinish(before, &files) : RecoverTwice(before, &files);
}

}  // namespace epochmeter::fuzz
