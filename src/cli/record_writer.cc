// SPDX-License-Identifier: Apache-2.0
#include "cli/record_writer.h"

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "runfile/run_writer.h"

namespace epochmeter::cli {
namespace {

using runfile::RunWriter;

// A flush that takes longer than this says that the disk is slow: then flushes come every 10 s, so
// that we don't add to its load, until one is quick again.
constexpr int64_t kSlowFlushNs = 50 * base::kNsPerMs;
constexpr int64_t kSlowPeriodNs = 10 * base::kNsPerSecond;
constexpr int kSlowFlushesInARow = 5;

class ThreadedWriter : public RecordWriter {
 public:
  explicit ThreadedWriter(std::unique_ptr<RunWriter> writer) : writer_(std::move(writer)) {
    thread_ = std::thread([this] { Loop(); });
  }
  ~ThreadedWriter() override { Join(); }

  void Write(const model::Record& record) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (queue_.size() >= kMaxQueuedRecords) {
      ++overflow_;
      return;
    }
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
    base::Result<> result = writer_->Finish(end);
    written_bytes_ = writer_->stats().bytes_written;
    return result;
  }

  uint64_t written_bytes() const override { return written_bytes_; }
  const std::vector<model::EntityDef>& entities() const override { return writer_->entities(); }
  const std::vector<model::SeriesDef>& series() const override { return writer_->series(); }

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
      written_bytes_ = writer_->stats().bytes_written;
    }
  }

  // False when stopping.
  bool WaitForFlush() {
    std::unique_lock<std::mutex> lock(mutex_);
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

  std::unique_ptr<RunWriter> writer_;  // of the thread; of the caller of Finish after Join
  std::mutex mutex_;                   // guards the next four
  std::vector<model::Record> queue_;
  uint64_t overflow_ = 0;
  bool flush_soon_ = false;
  bool stopping_ = false;
  std::condition_variable wake_;
  std::atomic<uint64_t> written_bytes_ = 0;
  bool failing_ = false, slow_ = false;  // of the thread
  int slow_in_a_row_ = 0;
  std::thread thread_;
};

}  // namespace

base::Result<std::unique_ptr<RecordWriter>> RecordWriter::Open(const std::string& path,
                                                               const Options& options) {
  RunWriter::Options writer_options;
  writer_options.force = options.force;
  EPM_ASSIGN(auto writer, options.resume ? RunWriter::Resume(path, writer_options)
                                         : RunWriter::Create(path, writer_options));
  return std::unique_ptr<RecordWriter>(std::make_unique<ThreadedWriter>(std::move(writer)));
}

}  // namespace epochmeter::cli
