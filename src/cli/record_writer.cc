// SPDX-License-Identifier: Apache-2.0
#include "cli/record_writer.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/strings.h"
#include "runfile/frame.h"
#include "runfile/run_files.h"
#include "runfile/run_writer.h"

namespace epochmeter::cli {
namespace {

using runfile::RunWriter;

// A flush that takes longer than this says that the disk is slow: then flushes come every 10 s, so
// that we don't add to its load, until one is quick again.
constexpr int64_t kSlowFlushNs = 50 * base::kNsPerMs;
constexpr int64_t kSlowPeriodNs = 10 * base::kNsPerSecond;
constexpr int kSlowFlushesInARow = 5;
constexpr int64_t kShortestPeriodNs = 100 * base::kNsPerMs;

// Tests seal more often than each 600 ticks, to end a writer in the middle of it.
uint32_t TicksPerSeal(uint32_t usual) {
  const char* value = std::getenv("EPOCHMETER_SEAL_TICKS");
  const auto ticks = base::ParseInt(value != nullptr ? value : "");
  return ticks && *ticks > 0 && *ticks < usual ? static_cast<uint32_t>(*ticks) : usual;
}

// Whether a recorder died while it made the files: a header at most, and no tail yet. What it had
// to say never reached them, so they are made anew.
bool DiedMakingFiles(const std::string& path) {
  struct stat info {};
  const bool bare = ::stat(path.c_str(), &info) == 0 &&
                    info.st_size <= static_cast<off_t>(runfile::kFileHeaderBytes);
  return bare && ::access(runfile::TailPath(path).c_str(), F_OK) != 0 && errno == ENOENT;
}

bool IsDefinition(const model::Record& record) {
  return std::holds_alternative<model::RunInfo>(record) ||
         std::holds_alternative<model::EntityDef>(record) ||
         std::holds_alternative<model::SeriesDef>(record);
}

// About what a record takes in memory.
size_t SizeOf(const model::Record& record) {
  size_t bytes = sizeof(model::Record);
  if (const auto* samples = std::get_if<model::Samples>(&record)) {
    bytes += samples->values.size() * sizeof(model::SampleValue);
  } else if (const auto* text = std::get_if<model::LogText>(&record)) {
    bytes += text->text.size();
  } else if (const auto* event = std::get_if<model::Event>(&record)) {
    for (const model::EventField& field : event->fields) {
      const auto* value = std::get_if<std::string>(&field.value);
      bytes += sizeof field + (value == nullptr ? 0 : value->size());
    }
  }
  return bytes;
}

class ThreadedWriter : public RecordWriter {
 public:
  ThreadedWriter(std::unique_ptr<RunWriter> writer, std::string path)
      : writer_(std::move(writer)),
        path_(std::move(path)),
        info_(writer_->info()),
        entities_(writer_->entities()),
        series_(writer_->series()) {}

  base::Result<> Start() {
    try {
      thread_ = std::thread([this] { Loop(); });
    } catch (const std::system_error& error) {
      return base::SystemError("cannot start a thread", "writer", error.code().value());
    }
    return {};
  }
  ~ThreadedWriter() override { Join(); }

  void Write(const model::Record& record) override {
    const size_t bytes = SizeOf(record);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (queued_bytes_ + bytes > kMaxQueuedBytes && !IsDefinition(record)) {
      ++overflow_;
      return;
    }
    queued_bytes_ += bytes;
    queue_.push_back(record);
  }

  void FlushSoon() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    flush_soon_ = true;
    wake_.notify_one();
  }

  base::Result<> Finish(const model::RunEnd& end) override {
    Join();
    WriteQueued();
    return writer_->Finish(end);
  }

  Figures figures() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return figures_;
  }
  const std::optional<model::RunInfo>& info() const override { return info_; }
  const std::vector<model::EntityDef>& entities() const override { return entities_; }
  const std::vector<model::SeriesDef>& series() const override { return series_; }

 private:
  void Join() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
      wake_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
  }

  void Loop() {
    while (WaitForFlush()) {
      WriteQueued();
      const base::Result<> flushed = writer_->Flush();
      Judge(flushed);
      NoteFigures();
    }
  }

  // On this thread, which may wait for a file server that does not answer.
  void NoteFigures() {
    const runfile::WriterStats& stats = writer_->stats();
    Figures figures{.flushes = stats.flushes,
                    .bytes_written = stats.bytes_written,
                    .last_flush_ns = stats.last_flush_ns,
                    .disk_free_bytes = {}};
    struct statvfs info {};
    if (::statvfs(path_.c_str(), &info) == 0) {
      figures.disk_free_bytes = static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    figures_ = figures;
  }

  // False when stopping.
  bool WaitForFlush() {
    std::unique_lock<std::mutex> lock(mutex_);
    // Asked for sooner, not more often than this: clients may send epochs in a loop.
    wake_.wait_for(lock, std::chrono::nanoseconds(kShortestPeriodNs), [this] { return stopping_; });
    wake_.wait_for(lock, std::chrono::nanoseconds(slow_ ? kSlowPeriodNs : kFlushPeriodNs),
                   [this] { return stopping_ || flush_soon_; });
    flush_soon_ = false;
    return !stopping_;
  }

  void WriteQueued() {
    std::vector<model::Record> records;
    uint64_t overflow = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      records.swap(queue_);
      queued_bytes_ = 0;
      overflow = std::exchange(overflow_, 0);
    }
    for (const model::Record& record : records) writer_->Write(record);
    if (overflow == 0) return;
    writer_->Write(
        model::Loss{.t_ns = base::MonotonicNs(),
                    .severity = model::LossSeverity::kDataLoss,
                    .kind = "recorder.queue_full",
                    .count = overflow,
                    .detail = "records that came while the disk stood still",
                    .help = "Write the run file to a faster or less loaded disk (run -o)."});
  }

  // Says once when the disk fails or becomes slow, and once when it is well again.
  void Judge(const base::Result<>& flushed) {
    if (!flushed.ok() && !failing_) {
      std::fprintf(stderr, "epochmeter: %s; recording goes on in memory\n",
                   flushed.error().Message().c_str());
    }
    failing_ = !flushed.ok();
    const bool slow = writer_->stats().last_flush_ns > kSlowFlushNs;
    slow_in_a_row_ = slow ? slow_in_a_row_ + 1 : 0;
    const bool now_slow = slow_in_a_row_ >= kSlowFlushesInARow || (slow_ && slow);
    if (now_slow != slow_) TellPeriod(now_slow);
    slow_ = now_slow;
  }

  void TellPeriod(bool slow) {
    writer_->Write(model::Event{
        .t_ns = base::MonotonicNs(),
        .kind = model::EventKind::kSource,
        .rank = {},
        .epoch = {},
        .step = {},
        .name = "recorder.flush_period",
        .fields = {
            {.key = "period_s",
             .value = base::SecondsFromNs(slow ? kSlowPeriodNs : kFlushPeriodNs)},
            {.key = "flush_s", .value = base::SecondsFromNs(writer_->stats().last_flush_ns)}}});
  }

  const std::unique_ptr<RunWriter> writer_;  // of the thread; of the caller of Finish after Join
  const std::string path_;
  const std::optional<model::RunInfo> info_;
  const std::vector<model::EntityDef> entities_;
  const std::vector<model::SeriesDef> series_;
  mutable std::mutex mutex_;  // guards the next six
  Figures figures_;
  std::vector<model::Record> queue_;
  size_t queued_bytes_ = 0;
  uint64_t overflow_ = 0;
  bool flush_soon_ = false;
  bool stopping_ = false;
  std::condition_variable wake_;
  bool failing_ = false, slow_ = false;  // of the thread
  int slow_in_a_row_ = 0;
  std::thread thread_;
};

}  // namespace

void TellKeptTail(const std::string& path) {
  if (path.empty()) return;
  std::fprintf(stderr,
               "epochmeter: the tail of a run whose file is gone is kept as %s; renamed to "
               "OTHER.emr.tail it is read as OTHER.emr\n",
               path.c_str());
}

base::Result<std::unique_ptr<RecordWriter>> RecordWriter::Open(const std::string& path,
                                                               const Options& options) {
  RunWriter::Options writer_options;
  const bool bare = options.resume && DiedMakingFiles(path);
  const bool resume = options.resume && !bare;
  writer_options.force = options.force || bare;
  writer_options.ticks_per_seal = TicksPerSeal(writer_options.ticks_per_seal);
  base::Result<std::unique_ptr<RunWriter>> writer =
      resume ? RunWriter::Resume(path, writer_options) : RunWriter::Create(path, writer_options);
  // The recorder before may have died before it made the file.
  if (options.resume && !writer.ok() && writer.error().code == ENOENT) {
    writer = RunWriter::Create(path, writer_options);
  }
  if (!writer.ok()) return writer.error();
  TellKeptTail((*writer)->kept_tail());
  auto threaded = std::make_unique<ThreadedWriter>(std::move(writer).value(), path);
  EPM_TRY(threaded->Start());
  return std::unique_ptr<RecordWriter>(std::move(threaded));
}

}  // namespace epochmeter::cli
