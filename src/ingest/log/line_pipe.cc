// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/line_pipe.h"

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>

namespace epochmeter::ingest::log {
namespace {

// Of a text that has room for it.
std::string_view Append(std::string_view piece, std::string* texts) {
  const size_t at = texts->size();
  texts->append(piece);
  return std::string_view(*texts).substr(at);
}

}  // namespace

LinePipe::LinePipe() : filling_(std::make_unique<Batch>()) {
  while (empty_.size() + 1 < kBatches) empty_.push_back(std::make_unique<Batch>());
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error&) {
    thread_ = {};
  }
}

LinePipe::~LinePipe() {
  if (!running()) return;
  Drain();
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LinePipe::Put(LineSink* sink, const Payload& payload, const Skeleton& skeleton) {
  const std::string_view before =
      filling_->lines.empty() ? std::string_view() : filling_->lines.back().payload.source;
  const bool same = payload.source == before;
  const size_t size = payload.text.size() + payload.source.size();
  if (filling_->texts.size() + size > filling_->texts.capacity() && !filling_->lines.empty()) {
    Push();
    return Put(sink, payload, skeleton);
  }
  Batch& batch = *filling_;
  if (batch.lines.empty()) batch.texts.reserve(std::max(kBatchBytes, size));
  Line& line = batch.lines.emplace_back();
  line.sink = sink;
  line.payload = payload;
  line.payload.text = Append(payload.text, &batch.texts);
  line.payload.source = same ? before : Append(payload.source, &batch.texts);
  line.payload.stamp = {};
  line.hash = skeleton.hash;
  line.numbers = skeleton.numbers;
  batch.numbers.insert(batch.numbers.end(), skeleton.begin.begin(),
                       skeleton.begin.begin() + skeleton.numbers);
}

void LinePipe::Push() {
  std::unique_lock lock(mutex_);
  full_.push_back(std::move(filling_));
  changed_.notify_all();
  changed_.wait(lock, [this] { return !empty_.empty(); });
  filling_ = std::move(empty_.back());
  empty_.pop_back();
}

void LinePipe::Drain() {
  if (!filling_->lines.empty()) Push();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return full_.empty() && !busy_; });
}

void LinePipe::Run() {
  Skeleton skeleton;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !full_.empty(); });
    if (full_.empty()) return;
    std::unique_ptr<Batch> batch = std::move(full_.front());
    full_.erase(full_.begin());
    busy_ = true;
    lock.unlock();
    Give(*batch, &skeleton);
    batch->lines.clear();
    batch->numbers.clear();
    batch->texts.clear();
    lock.lock();
    busy_ = false;
    empty_.push_back(std::move(batch));
    changed_.notify_all();
  }
}

void LinePipe::Give(const Batch& batch, Skeleton* skeleton) {
  auto numbers = batch.numbers.begin();
  for (const Line& line : batch.lines) {
    skeleton->hash = line.hash;
    skeleton->numbers = line.numbers;
    std::copy_n(numbers, line.numbers, skeleton->begin.begin());
    numbers += line.numbers;
    line.sink->OnLine(line.payload, *skeleton);
  }
}

}  // namespace epochmeter::ingest::log
