// SPDX-License-Identifier: Apache-2.0
#include "cli/record_writer.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/network_folder.h"
#include "base/strings.h"
#include "cli/disk_watch.h"
#include "cli/say.h"
#include "model/source_event.h"
#include "runfile/file_system.h"
#include "runfile/frame.h"
#include "runfile/pending.h"
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

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

class ThreadedWriter : public RecordWriter {
 public:
  ThreadedWriter(std::string path, const Options& options)
      : path_(std::move(path)), options_(options) {}

  // Waits for the files as Open says.
  base::Result<> Start() {
    try {
      thread_ = std::thread([this] { Loop(); });
    } catch (const std::system_error& error) {
      return base::SystemError("cannot start a thread", "writer", error.code().value());
    }
    std::unique_lock<std::mutex> lock(mutex_);
    const auto opened = [this] { return opening_.has_value(); };
    if (options_.resume) {
      wake_.wait(lock, opened);
    } else if (!wake_.wait_for(lock, std::chrono::nanoseconds(kOpeningNs), opened)) {
      SayAtOnce("epochmeter: the disk of " + path_ +
                " does not answer; recording goes on in memory");
      return {};
    }
    if (!opening_->ok()) return opening_->error();
    known_file_system_ = file_system_;
    return {};
  }
  ~ThreadedWriter() override { Join(); }

  void Write(const model::Record& record) override {
    const size_t bytes = SizeOf(record);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (opening_ && !opening_->ok()) return;  // told; Finish is an error
    if (queued_bytes_ + bytes > kMaxQueuedBytes && !IsDefinition(record)) {
      ++overflow_;
      if (const int64_t t_ns = runfile::TimeOf(record); t_ns != 0) {
        overflow_span_.Add({.first_ns = t_ns, .last_ns = t_ns});
      }
      return;
    }
    queued_bytes_ += bytes;
    queue_.push_back(record);
  }

  void FlushSoon() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    flush_soon_ = true;
    wake_.notify_all();
  }

  base::Result<> Finish(const model::RunEnd& end) override {
    Join();
    if (writer_ == nullptr) return opening_->error();
    WriteQueued();
    if (const auto failure = disk_.Last(base::MonotonicNs())) writer_->Write(*failure);
    lock_told_ = true;  // no record after the end
    base::Result<> finished = writer_->Finish(end);
    // The launcher waits for two seconds: half of it is for a disk that may come back.
    const int64_t until_ns = base::MonotonicNs() + base::kNsPerSecond;
    while (!finished.ok() && runfile::MayPass(finished.error()) && base::MonotonicNs() < until_ns) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      finished = writer_->Finish(end);
    }
    TellNews();
    return finished;
  }

  Figures figures() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return figures_;
  }
  const std::optional<model::RunInfo>& info() const override { return info_; }
  const std::vector<model::EntityDef>& entities() const override { return entities_; }
  const std::vector<model::SeriesDef>& series() const override { return series_; }
  const std::string& network_file_system() const override { return known_file_system_; }
  const std::string& path() const override { return writer_ ? writer_->path() : path_; }

 private:
  void Join() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
      wake_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }

  void Loop() {
    if (!OpenFiles()) return;
    TellNews();
    while (WaitForFlush()) {
      const uint64_t decoded =
          options_.words == nullptr ? 0 : options_.words->events_decoded.load();
      WriteQueued();
      const base::Result<> flushed = writer_->Flush();
      if (options_.words != nullptr && flushed.ok()) options_.words->events_kept = decoded;
      Judge(flushed);
      TellNews();
      NoteFigures();
    }
  }

  bool OpenFiles() {
    const bool bare = options_.resume && DiedMakingFiles(path_);
    const bool resume = options_.resume && !bare;
    RunWriter::Options options{.force = options_.force || bare, .wait_for_disk = true};
    options.ticks_per_seal = TicksPerSeal(options.ticks_per_seal);
    options.memory_limit_bytes = kMaxUnwrittenBytes;
    const int64_t begin_ns = base::MonotonicNs();
    base::Result<std::unique_ptr<RunWriter>> writer =
        resume ? RunWriter::Resume(path_, options) : RunWriter::Create(path_, options);
    // The recorder before may have died before it made the file.
    if (options_.resume && !writer.ok() && writer.error().code == ENOENT) {
      writer = RunWriter::Create(path_, options);
    }
    const bool ok = writer.ok();
    if (!ok && !options_.resume && base::MonotonicNs() - begin_ns > kOpeningNs) {
      SayAtOnce("epochmeter: " + writer.error().Message() +
                "; the training goes on without recording");
    }
    const std::string file_system = base::NetworkFileSystem(ParentOf(path_));
    const std::lock_guard<std::mutex> lock(mutex_);
    if (ok) {
      writer_ = std::move(writer).value();
      info_ = writer_->info();
      entities_ = writer_->entities();
      series_ = writer_->series();
    }
    file_system_ = file_system;
    opening_ = ok ? base::Result<>() : base::Result<>(writer.error());
    if (!ok) queue_ = {};
    wake_.notify_all();
    return ok;
  }

  // What happened to the files beside the flushes, once each.
  void TellNews() {
    if (!kept_tail_told_) TellKeptTail(writer_->kept_tail());
    kept_tail_told_ = !writer_->kept_tail().empty();
    if (!writer_->locked() && !std::exchange(lock_told_, true)) TellNoLock();
    if (writer_->path() == told_path_) return;
    if (!told_path_.empty()) {
      SayAtOnce("epochmeter: the run file was moved to " + writer_->path() +
                "; recording goes on there");
    }
    told_path_ = writer_->path();
  }

  void TellNoLock() {
    SayAtOnce("epochmeter: the file system of " + writer_->path() +
              " has no locks; recording without");
    writer_->Write(model::Loss{
        .t_ns = base::MonotonicNs(),
        .severity = model::LossSeverity::kInfo,
        .kind = "recorder.no_lock",
        .count = 1,
        .detail = "the file system of the run file has no locks: only the file's creation keeps "
                  "a second recorder away",
        .help = "Don't write to this file, or recover it, from another machine meanwhile."});
  }

  // On this thread, which may wait for a file server that does not answer.
  void NoteFigures() {
    const runfile::WriterStats& stats = writer_->stats();
    Figures figures{.flushes = stats.flushes,
                    .bytes_written = stats.bytes_written,
                    .last_flush_ns = stats.last_flush_ns,
                    .disk_free_bytes = {}};
    struct statvfs info {};
    if (::statvfs(writer_->path().c_str(), &info) == 0) {
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
    // A disk that failed is asked soon whether it is well again, also a slow one.
    wake_.wait_for(
        lock, std::chrono::nanoseconds(slow_ && !disk_.failing() ? kSlowPeriodNs : kFlushPeriodNs),
        [this] { return stopping_ || flush_soon_; });
    flush_soon_ = false;
    return !stopping_;
  }

  void WriteQueued() {
    std::vector<model::Record> records;
    uint64_t overflow = 0;
    runfile::TimeSpan span;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      records.swap(queue_);
      queued_bytes_ = 0;
      overflow = std::exchange(overflow_, 0);
      span = std::exchange(overflow_span_, {});
    }
    for (const model::Record& record : records) writer_->Write(record);
    if (overflow == 0) return;
    const int64_t start_ns = writer_->info() ? writer_->info()->anchor.mono_ns : 0;
    writer_->Write(
        model::Loss{.t_ns = base::MonotonicNs(),
                    .severity = model::LossSeverity::kDataLoss,
                    .kind = "recorder.queue_full",
                    .count = overflow,
                    .detail = "records that came while the disk stood still" + span.Text(start_ns),
                    .help = "Write the run file to a faster or less loaded disk (run -o)."});
  }

  // Says when the disk fails or becomes slow, and when it is well again.
  void Judge(const base::Result<>& flushed) {
    const auto failure = disk_.Note(flushed, writer_->stats().last_flush_ns, base::MonotonicNs());
    if (failure) writer_->Write(*failure);
    const bool slow = writer_->stats().last_flush_ns > kSlowFlushNs;
    slow_in_a_row_ = slow ? slow_in_a_row_ + 1 : 0;
    const bool now_slow = slow_in_a_row_ >= kSlowFlushesInARow || (slow_ && slow);
    if (now_slow != slow_) TellPeriod(now_slow);
    slow_ = now_slow;
  }

  void TellPeriod(bool slow) {
    writer_->Write(model::SourceEvent(
        base::MonotonicNs(), "recorder.flush_period",
        {{.key = "period_s", .value = base::SecondsFromNs(slow ? kSlowPeriodNs : kFlushPeriodNs)},
         {.key = "flush_s", .value = base::SecondsFromNs(writer_->stats().last_flush_ns)}}));
  }

  const std::string path_;  // as it was given
  const Options options_;
  std::unique_ptr<RunWriter> writer_;   // of the thread; of the caller of Finish after Join
  std::optional<model::RunInfo> info_;  // these three: as the files were opened
  std::vector<model::EntityDef> entities_;
  std::vector<model::SeriesDef> series_;
  std::string known_file_system_;
  mutable std::mutex mutex_;               // guards the next nine
  std::optional<base::Result<>> opening_;  // how it went
  std::string file_system_;
  Figures figures_;
  std::vector<model::Record> queue_;
  size_t queued_bytes_ = 0;
  uint64_t overflow_ = 0;
  runfile::TimeSpan overflow_span_;
  bool flush_soon_ = false;
  bool stopping_ = false;
  std::condition_variable wake_;
  DiskWatch disk_;  // this and what follows: of the thread
  bool kept_tail_told_ = false, lock_told_ = false;
  std::string told_path_;
  bool slow_ = false;
  int slow_in_a_row_ = 0;
  std::thread thread_;
};

}  // namespace

void TellKeptTail(const std::string& path) {
  if (path.empty()) return;
  SayAtOnce("epochmeter: the tail of a run whose file is gone is kept as " + path +
            "; renamed to OTHER.emr.tail it is read as OTHER.emr");
}

base::Result<std::unique_ptr<RecordWriter>> RecordWriter::Open(const std::string& path,
                                                               const Options& options) {
  auto writer = std::make_unique<ThreadedWriter>(path, options);
  EPM_TRY(writer->Start());
  return std::unique_ptr<RecordWriter>(std::move(writer));
}

}  // namespace epochmeter::cli
