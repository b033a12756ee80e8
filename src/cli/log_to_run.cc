// SPDX-License-Identifier: Apache-2.0
#include "cli/log_to_run.h"

#include <filesystem>
#include <utility>

#include "cli/command.h"
#include "cli/log_join.h"
#include "runfile/run_reader.h"
#include "runfile/run_writer.h"

namespace epochmeter::cli {
namespace {

// Passes records to the file and flushes now and then, so that memory stays bounded; holds the end
// back, because it is what finishes the file.
class FileSink : public model::Sink {
 public:
  explicit FileSink(runfile::RunWriter& writer) : writer_(writer) {}

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

// The recording with the log's steps in it; its end is the recording's.
base::Result<LogJobResult> Joined(const LogJob& job, const diagnose::ReportOptions& options,
                                  const model::Run& recording, FileSink* file) {
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
  FileSink file(*writer);
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
