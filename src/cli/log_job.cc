// SPDX-License-Identifier: Apache-2.0
#include "cli/log_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "cli/log_findings.h"
#include "cli/log_read.h"
#include "export/log_merge.h"
#include "ingest/log/engine.h"
#include "ingest/log/event_ledger.h"
#include "ingest/log/log_messages.h"
#include "ingest/log/log_point.h"
#include "ingest/log/log_run.h"
#include "ingest/log/log_summary.h"
#include "model/run_builder.h"

namespace epochmeter::cli {
namespace {

using ingest::log::EngineCounts;
using ingest::log::LogEngine;
using ingest::log::LogEvent;
using ingest::log::LogRecord;
using ingest::log::LogRun;
using ingest::log::LogSummary;

// Enough for every rule, and bounded whatever the log's length.
constexpr size_t kMostSteps = 100'000;

class RowSink : public ingest::log::LogSink {
 public:
  RowSink(exporting::LogRowWriter& rows, const LogSource& source) : rows_(rows), source_(source) {}

  void OnRecord(const LogRecord& record) override {
    rows_.Record(ingest::log::CopyOf(record), Name(record.place.file), record.text);
    ++records_;
  }

  void OnEvent(const LogEvent& event) override {
    rows_.Event(ingest::log::EventLedger::RowOf(event), Name(event.place.file));
  }

  uint64_t records() const { return records_; }

 private:
  std::string_view Name(uint32_t file) const {
    return file < source_.files().size() ? std::string_view(source_.files()[file].name)
                                         : std::string_view();
  }

  exporting::LogRowWriter& rows_;
  const LogSource& source_;
  uint64_t records_ = 0;
};

LogRun::Options RunOptions(const LogSource& source) {
  LogRun::Options options{.name = source.name(), .modified_ns = source.modified_ns()};
  return options;
}

std::vector<std::string> NotesOf(const LogSource& source, const LogEngine& engine) {
  std::vector<std::string> notes = source.notes();
  for (std::string& note : engine.Notes()) notes.push_back(std::move(note));
  return notes;
}

LogReading ReadingOf(const LogJob& job) {
  return {.follow = job.follow, .after_batch = job.after_batch, .output_fd = job.output_fd};
}

unsigned ThreadsOf(const LogJob& job, const LogSource& source) {
  constexpr uint64_t kMuchBytes = uint64_t{16} << 20;
  if (job.follow) return 1;
  if (job.threads > 0) return job.threads;
  return source.bytes() > kMuchBytes && std::thread::hardware_concurrency() > 1 ? 2 : 1;
}

// How the log itself says that the training ended; "lost" where it does not.
model::RunEnd EndOf(const model::LogReport& report) {
  model::RunEnd end{.t_ns = 0, .reason = "lost", .exit_code = {}, .signal = {}};
  if (!report.cause) return end;  // whatever failed, the training went on
  for (const model::LogEventRow& event : report.events) {
    const bool ends = event.kind == "exitcode" || event.kind == "process_exit" ||
                      event.kind == "killed" || event.kind == "fatal_signal";
    for (const auto& [key, number] : event.numbers) {
      const auto* whole = std::get_if<int64_t>(&number);
      if (!ends || whole == nullptr || *whole < -64 || *whole > 255) continue;
      if (key == "signal" && *whole > 0) end.signal = static_cast<int32_t>(*whole);
      if (key == "code" && *whole < 0) end.signal = static_cast<int32_t>(-*whole);
      if (key == "code" && *whole >= 0) end.exit_code = static_cast<int32_t>(*whole);
    }
  }
  if (end.signal) end.exit_code.reset();
  if (end.exit_code) end.reason = "exited";
  if (end.signal) end.reason = "signalled";
  return end;
}

}  // namespace

base::Result<LogJobResult> SumUpLogs(const LogJob& job, const diagnose::ReportOptions& options,
                                     model::Sink* records) {
  EPM_ASSIGN(const auto source, LogSource::Find(job.inputs, job.follow));
  model::RunBuilder builder;
  LogRun::Options thinned = RunOptions(*source);
  thinned.most_steps = kMostSteps;
  thinned.tables = &builder;
  thinned.texts = false;
  LogRun run(builder, thinned);
  std::optional<LogRun> whole;
  if (records != nullptr) whole.emplace(*records, RunOptions(*source));
  std::vector<LogRun*> runs = {&run};
  if (whole) runs.push_back(&*whole);
  LogSummary summary(runs);
  LogEngine engine(summary, {.messages = true, .threads = ThreadsOf(job, *source)});
  EPM_TRY(source->Read(&engine, ReadingOf(job)));
  LogJobResult result;
  result.warnings = source->warnings();
  result.partial = source->partial();
  result.report = summary.Take(engine.counts(), NotesOf(*source, engine), source->files());
  ingest::log::ReportMessages(*engine.messages(), &result.report);
  const model::RunEnd end = EndOf(result.report);
  for (LogRun* each : runs) each->Finish(engine.counts(), end);
  result.run = builder.Finish();
  result.report.findings = FindingsOfLog(result.run, options);
  if (run.joined_steps() > 1) {
    result.report.notes.push_back(
        fmt::format("the rules judged {} steps, each joined from {} neighbouring records",
                    result.run.steps.empty() ? 0 : result.run.steps.begin()->second.size(),
                    run.joined_steps()));
  }
  return result;
}

base::Result<LogJobResult> WriteLogRows(const LogJob& job, exporting::LogRowWriter* rows) {
  EPM_ASSIGN(const auto source, LogSource::Find(job.inputs, job.follow));
  // What is followed comes in the order in which it is written.
  std::unique_ptr<exporting::LogRowWriter> merged;
  if (source->files().size() > 1 && !job.follow) merged = exporting::MergeLogRows(rows);
  RowSink sink(merged ? *merged : *rows, *source);
  LogEngine engine(sink);
  EPM_TRY(source->Read(&engine, ReadingOf(job)));
  if (merged) EPM_TRY(merged->Finish());
  LogJobResult result;
  result.warnings = source->warnings();
  result.partial = source->partial();
  result.report.records = engine.counts().records;
  result.report.notes = NotesOf(*source, engine);
  return result;
}

}  // namespace epochmeter::cli
