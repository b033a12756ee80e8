// SPDX-License-Identifier: Apache-2.0
// GPU memory ran out: the sentences of Paddle, PyTorch, TensorFlow and JAX, also broken over lines.
// A host's allocator that gave nothing is "oom_host".
#include <algorithm>
#include <array>

#include "base/strings.h"
#include "ingest/log/events/event_text.h"
#include "ingest/log/events/families.h"
#include "model/oom_text.h"

namespace epochmeter::ingest::log {
namespace {

using std::string_view;

constexpr int kMostLines = 8;
constexpr size_t kMostBytes = 4096;

std::optional<int64_t> Whole(std::optional<double> bytes) {
  if (!bytes || !(*bytes >= 0) || *bytes > 9e18) return {};
  return static_cast<int64_t>(*bytes + 0.5);
}

void AddFigures(string_view text, LogEvent* event) {
  const auto oom = model::ParseOomText(text);
  if (!oom) return;
  if (oom->gpu) AddNumber(event, "gpu", std::optional<int64_t>(*oom->gpu));
  AddNumber(event, "requested_bytes", Whole(oom->asked_bytes));
  AddNumber(event, "total_bytes", Whole(oom->total_bytes));
  AddNumber(event, "free_bytes", Whole(oom->free_bytes));
  AddNumber(event, "allocated_bytes", Whole(oom->allocated_bytes));
  AddNumber(event, "unallocated_bytes", Whole(oom->unallocated_bytes));
  AddNumber(event, "process_bytes", Whole(oom->process_bytes));
  double others = 0;
  for (const auto& other : oom->others) others += other.second;
  if (!oom->others.empty()) AddNumber(event, "others_bytes", Whole(others));
}

// PyTorch's sentence goes on for several lines when something wrapped it.
class WrappedBlock : public EventBlock {
 public:
  WrappedBlock(LogEvent event, string_view text) : event_(std::move(event)), text_(text) {}

  Take Next(const EventLine& line) override {
    if (++lines_ > kMostLines || text_.size() > kMostBytes || !GoesOn(line.text)) {
      return Take::kOver;
    }
    text_ += ' ';
    text_ += base::Trim(line.text);
    event_.last_line = line.place.line;
    done_ = IsWhole(text_);
    return Take::kTaken;
  }
  bool Done() const override { return done_; }
  void End(EventContext& context) override {
    AddFigures(text_, &event_);
    context.Emit(std::move(event_));
  }

  // The sentence of old ends with its bracket, the new one with what PyTorch holds unused.
  static bool IsWhole(string_view text) {
    const auto tried = After(text, "Tried to allocate ");
    if (!tried) return true;
    if (const size_t open = tried->find('('); open != string_view::npos && open < 24) {
      return tried->find(')', open) != string_view::npos;
    }
    return Contains(text, "unallocated") || Contains(text, "PYTORCH_") || !Contains(text, "GPU ");
  }

 private:
  static bool GoesOn(string_view text) {
    constexpr auto kWords = std::to_array<string_view>(
        {"MiB", "GiB", "memory", "PyTorch", "allocated", "capacity", "reserved", "free"});
    const string_view trimmed = base::Trim(text);
    return !trimmed.empty() && !Contains(trimmed, "out of memory") &&
           !Contains(trimmed, "Traceback") && !ReadExceptionText(trimmed) &&
           std::any_of(kWords.begin(), kWords.end(),
                       [trimmed](string_view word) { return Contains(trimmed, word); });
  }

  LogEvent event_;
  std::string text_;
  int lines_ = 0;
  bool done_ = false;
};

// Whether the line reports it, rather than speaks of it.
bool OfDevice(string_view text) {
  if (Contains(text, "Out of memory error on GPU") && Contains(text, "Cannot allocate"))
    return true;
  if (Contains(text, "out of memory. Tried to allocate") ||
      Contains(text, "out of memory trying to allocate")) {
    return !Contains(text, "this is not a failure") && !Contains(text, "Allocator (");
  }
  for (const string_view mark : {"CUDA out of memory", "HIP out of memory"}) {
    const size_t at = text.find(mark);
    if (at == string_view::npos) continue;
    const string_view rest = base::Trim(text.substr(at + mark.size()));
    if (at >= 7 && text.substr(at - 7, 7) == "Error: " && (rest.empty() || rest == "."))
      return true;
  }
  if (Contains(text, "CUDA error: out of memory") ||
      Contains(text, "CUDA error(2), out of memory")) {
    return true;
  }
  if (Contains(text, "failed to allocate") && Contains(text, "CUDA_ERROR_OUT_OF_MEMORY")) {
    return true;
  }
  if (Contains(text, "Check failed: ") && Contains(text, "cudaSuccess") &&
      Contains(text, "out of memory")) {
    return true;  // MXNet and Caffe
  }
  if (Contains(text, "cudaMalloc retry failed: out of memory")) return true;  // MXNet
  if (Contains(text, "OOM when allocating tensor with shape")) return true;
  if (Contains(text, "Error: CUDA error: CUBLAS_STATUS_ALLOC_FAILED")) return true;
  return Contains(text, "RESOURCE_EXHAUSTED: ") && Contains(text, "Error: RESOURCE_EXHAUSTED: ") &&
         (Contains(text, "ut of memory") || Contains(text, "llocat"));
}

bool OfHost(string_view text) {
  if (Contains(text, "DefaultCPUAllocator: ")) return Contains(text, "you tried to allocate");
  if (Contains(text, "_ArrayMemoryError: Unable to allocate")) return true;
  if (Contains(text, "what():") && Contains(text, "std::bad_alloc")) return true;
  const auto exception = ReadExceptionText(text);
  return exception && exception->type == "MemoryError";
}

bool Read(const EventLine& line, EventContext& context) {
  if (OfHost(line.text) ||
      (Contains(line.text, "OOM when allocating") && Contains(line.text, "device:CPU:"))) {
    LogEvent event = MakeEvent("oom_host", line);
    AddFigures(line.text, &event);
    context.Emit(std::move(event));
    return true;
  }
  if (!OfDevice(line.text)) return false;
  LogEvent event = MakeEvent("oom_gpu", line);
  const string_view text = line.text.substr(0, kMostBytes);
  if (!WrappedBlock::IsWhole(text)) {
    context.Open(std::make_unique<WrappedBlock>(std::move(event), text));
    return true;
  }
  AddFigures(text, &event);
  context.Emit(std::move(event));
  return true;
}

constexpr auto kAnchors =
    std::to_array<string_view>({"outofmemory", "OutofmemoryerroronGPU", "OUTOFMEMORY",
                                "RESOURCEEXHAUSTED", "OOMwhenallocating", "CUBLASSTATUSALLOCFAILED",
                                "DefaultCPUAllocator", "MemoryError", "badalloc"});

}  // namespace

const EventFamily kOomGpuFamily = {"oom_gpu", kAnchors, Read};

}  // namespace epochmeter::ingest::log
