// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/oom_post_mortem.h"

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "ingest/log/events/event_text.h"

namespace epochmeter::ingest::log {
namespace {

using std::string_view;

constexpr size_t kMostFiles = 1024;
constexpr size_t kMostPoints = 256;
constexpr size_t kFewestPoints = 8;  // to speak of growth
// A rise beyond these is more than what shapes of batches explain.
constexpr double kLeakRatio = 1.05, kSpikeRatio = 1.2;
constexpr int64_t kMostBatch = 100'000'000;

double MedianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// What stands between a name and its number: words only in front of "=" or ":".
bool LeadsToNumber(string_view between) {
  const size_t sign = between.find_first_of("=:");
  const string_view words = between.substr(0, sign == string_view::npos ? 0 : sign);
  const string_view rest = between.substr(words.size());
  return words.find_first_not_of("abcdefghijklmnopqrstuvwxyz_ .'\"\t") == string_view::npos &&
         rest.find_first_not_of(" \t:=.'\"|") == string_view::npos && !between.empty();
}

// The number behind "batch_size": "batch_size=8", "'batch_size': 8", "batch size per device = 8".
std::optional<int64_t> BatchSizeIn(string_view text) {
  constexpr auto kNames = std::to_array<string_view>(
      {"batch_size", "batch size", "batchsize", "batchSize", "BatchSize", "BATCH_SIZE"});
  for (const string_view name : kNames) {
    const size_t at = text.find(name);
    if (at == string_view::npos) continue;
    const string_view rest = text.substr(at + name.size(), 80);
    const size_t digit = rest.find_first_of("0123456789");
    if (digit == string_view::npos || !LeadsToNumber(rest.substr(0, digit))) continue;
    const auto size = IntAtBegin(rest.substr(digit));
    if (size && *size > 0 && *size < kMostBatch) return size;
  }
  return {};
}

}  // namespace

OomPostMortem::File* OomPostMortem::Find(uint32_t file) {
  if (!files_.contains(file) && files_.size() >= kMostFiles) return nullptr;
  return &files_[file];
}

void OomPostMortem::Record(const LogRecord& record) {
  const LogValue* memory = record.Find(Role::kMemory);
  const LogValue* batch = record.Find(Role::kBatchSize);
  if (memory == nullptr && batch == nullptr) return;
  File* file = Find(record.place.file);
  if (file == nullptr) return;
  if (batch != nullptr && batch->value > 0 && batch->value < static_cast<double>(kMostBatch)) {
    file->batch_size = static_cast<int64_t>(batch->value);
    file->batch_size_line = record.place.line;
  }
  if (memory == nullptr || !(memory->value > 0)) return;
  if (record.start != file->start) {
    file->start = record.start;
    file->records = 0;
    file->keep_each = 1;
    file->points.clear();
  }
  const auto step = record.Number(Role::kStep);
  file->last = {step.value_or(static_cast<double>(file->records)), memory->value};
  if (file->records++ % file->keep_each != 0) return;
  file->points.push_back(file->last);
  if (file->points.size() < kMostPoints) return;
  for (size_t i = 0; i < kMostPoints / 2; ++i) file->points[i] = file->points[2 * i];
  file->points.resize(kMostPoints / 2);
  file->keep_each *= 2;
}

void OomPostMortem::Line(const EventLine& line) {
  const auto size = BatchSizeIn(line.text.substr(0, 65536));
  if (!size) return;
  File* file = Find(line.place.file);
  if (file == nullptr) return;
  file->batch_size = size;
  file->batch_size_line = line.place.line;
}

const char* OomPostMortem::Growth(const File& file) {
  // What is printed first is often before memory has been taken at all.
  const size_t skipped = file.points.size() / 8;
  std::vector<double> bytes;
  for (size_t i = skipped; i < file.points.size(); ++i) bytes.push_back(file.points[i].bytes);
  const double usual = MedianOf(bytes);
  const size_t third = bytes.size() / 3;
  const auto at = [&](size_t from, size_t to) {
    return MedianOf(
        {bytes.begin() + static_cast<ptrdiff_t>(from), bytes.begin() + static_cast<ptrdiff_t>(to)});
  };
  const double early = at(0, third), middle = at(third, 2 * third),
               late = at(2 * third, bytes.size());
  if (middle > early && late > middle && late > early * kLeakRatio) return "leak";
  return file.last.bytes > usual * kSpikeRatio ? "spike" : "flat";
}

void OomPostMortem::Explain(LogEvent* event) const {
  const auto asked = FindInt(*event, "requested_bytes"), free = FindInt(*event, "free_bytes");
  if (asked && free && *free > *asked) AddNumber(event, "fragmented", std::optional<int64_t>(1));
  const auto found = files_.find(event->place.file);
  if (found == files_.end()) return;
  const File& file = found->second;
  AddNumber(event, "batch_size", file.batch_size);
  if (file.batch_size) {
    AddNumber(event, "batch_size_line", std::optional(static_cast<int64_t>(file.batch_size_line)));
  }
  if (file.points.size() < kFewestPoints) return;
  const Point& from = file.points[file.points.size() / 8];
  AddNumber(event, "memory_from_bytes", std::optional(static_cast<int64_t>(from.bytes)));
  AddNumber(event, "memory_to_bytes", std::optional(static_cast<int64_t>(file.last.bytes)));
  AddNumber(event, "memory_steps", std::optional(file.last.step - from.step));
  AddText(event, "memory_growth", Growth(file));
}

std::vector<model::Message> OomAdvice(const LogEvent& event) {
  std::vector<model::Message> advice;
  if (FindInt(event, "fragmented")) {
    advice.push_back(
        {"More memory was free than was asked for: it is fragmented. Let the allocator "
         "grow its segments (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, "
         "FLAGS_allocator_strategy=auto_growth).",
         "空闲显存多于申请量，说明显存碎片化。可让分配器扩展显存段"
         "（PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True，"
         "FLAGS_allocator_strategy=auto_growth）。"});
  }
  const string_view growth = FindText(event, "memory_growth");
  if (growth == "leak") {
    advice.push_back(
        {"Printed memory grew up to the failure: look for tensors kept from step to "
         "step, such as losses that are summed without detaching them.",
         "打印的显存一直在增长：检查是否有跨步保留的张量，例如未 detach 就累加的损失。"});
  }
  if (growth == "spike") {
    advice.push_back(
        {"Memory jumped at the end: look for the longest or largest sample of that "
         "step, and bound its size.",
         "显存在最后突增：检查该步中最长或最大的样本，并限制其大小。"});
  }
  if (const auto batch = FindInt(event, "batch_size"); batch && *batch > 1) {
    advice.push_back({"A smaller batch than " + std::to_string(*batch) +
                          " with gradient accumulation trains the same in less memory.",
                      "把批大小降到 " + std::to_string(*batch) +
                          " 以下并配合梯度累积，可用更少显存完成同样的训练。"});
  } else {
    advice.push_back(
        {"Use a smaller batch with gradient accumulation, or activation checkpointing.",
         "减小批大小并使用梯度累积，或启用激活重计算。"});
  }
  return advice;
}

}  // namespace epochmeter::ingest::log
