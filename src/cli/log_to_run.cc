// SPDX-License-Identifier: Apache-2.0
#include "cli/log_to_run.h"

#include <filesystem>
#include <utility>

#include "cli/command.h"
#include "cli/log_join.h"
#include "cli/run_file_sink.h"
#include "runfile/run_reader.h"
#include "runfile/run_writer.h"

namespace epochmeter::cli {
namespace {

// The recording with the log's steps in it; its end is the recording's.
base::Result<LogJobResult> Joined(const LogJob& job, const diagnose::ReportOptions& options,
                                  const model::Run& recording, RunFileSink* file) {
  model::Registry registry(*file);
  model::RemapSink copy(registry, *file);
  EPM_TRY(CopyRun(recording, &copy));
  LogJoiner joiner(recording, &registry, file);
  EPM_ASSIGN(LogJobResult result, SumUpLogs(job, options, &joiner));
  EPM_TRY(joiner.Check(job.inputs.front()));
  for (std::string& note : joiner.Notes()) result.warnings.push_back(std::move(note));
  if (recording.end) file->Write(*recording.end);
  return result;
}

}  // namespace

base::Result<LogJobResult> WriteRunOfLogs(const LogJob& job, const diagnose::ReportOptions& options,
                                          const std::string& path, const LogRunOptions& how) {
  std::optional<model::Run> recording;
  if (how.join) {
    std::error_code ignored;
    if (std::filesystem::equivalent(*how.join, path, ignored)) {
      return base::Error{.what = "the joined run would replace the recording",
                         .where = path,
                         .why = "",
                         .what_to_do = "give another name with -o",
                         .code = kUsageError};
    }
    EPM_ASSIGN(recording, runfile::OpenRun(*how.join));
  }
  EPM_ASSIGN(const auto writer, runfile::RunWriter::Create(path, {.force = how.force}));
  RunFileSink file(*writer);
  base::Result<LogJobResult> result =
      recording ? Joined(job, options, *recording, &file) : SumUpLogs(job, options, &file);
  base::Result<> finished = result.ok() ? file.Finish() : base::Result<>();
  if (!result.ok() || !finished.ok()) {
    EPM_TRY(writer->Discard());
    if (!finished.ok()) return std::move(finished).error();
    return result;
  }
  result->report.run_path = path;
  return result;
}

}  // namespace epochmeter::cli
