// SPDX-License-Identifier: Apache-2.0
// Lines on their way from the thread that cuts them out of a log to a thread of its own that
// understands them, in batches and in order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ingest/log/log_line.h"
#include "ingest/log/skeleton.h"

namespace epochmeter::ingest::log {

class LineSink {
 public:
  virtual ~LineSink() = default;
  // `payload` and `skeleton` are good during the call.
  virtual void OnLine(const Payload& payload, const Skeleton& skeleton) = 0;
};

// Put and Drain are called by one thread. Holds at most kBatches batches of about kBatchBytes (or
// of one longer line) whatever the log's length.
class LinePipe {
 public:
  LinePipe();
  ~LinePipe();
  LinePipe(const LinePipe&) = delete;
  LinePipe& operator=(const LinePipe&) = delete;

  // False when the system gives no thread: then lines are not taken.
  bool running() const { return thread_.joinable(); }
  // Copies the line; the sink gets it later, in the other thread. The payload's stamp is left out.
  void Put(LineSink* sink, const Payload& payload, const Skeleton& skeleton);
  // Returns when the sinks have had all lines; what they did is visible to the caller.
  void Drain();

 private:
  static constexpr size_t kBatches = 4;
  static constexpr size_t kBatchBytes = 128 * 1024;
  struct Line {
    LineSink* sink = nullptr;
    Payload payload;
    uint64_t hash = 0;
    uint32_t numbers = 0;  // of the line; their places follow those of the line before
  };
  struct Batch {
    std::string texts;  // that the payloads view; never grows while there are any
    std::vector<Line> lines;
    std::vector<uint32_t> numbers;
  };

  void Push();
  void Run();
  static void Give(const Batch& batch, Skeleton* skeleton);

  std::unique_ptr<Batch> filling_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Batch>> full_;  // in order
  std::vector<std::unique_ptr<Batch>> empty_;
  bool busy_ = false;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace epochmeter::ingest::log
