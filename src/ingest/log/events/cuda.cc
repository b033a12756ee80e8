// SPDX-License-Identifier: Apache-2.0
// CUDA calls that failed, and assertions on the GPU, of which each thread of a block writes a line.
#include <array>

#include "base/strings.h"
#include "ingest/log/events/event_text.h"
#include "ingest/log/events/families.h"

namespace epochmeter::ingest::log {
namespace {

using std::string_view;

// ".../Loss.cu:257: nll_loss...: block: [0,0,0], thread: [4,0,0] Assertion `t >= 0` failed."
bool ReadAssert(const EventLine& line, EventContext& context) {
  const string_view text = line.text;
  const bool torch = Contains(text, "thread: [") && Contains(text, "block: [");
  const bool paddle = Contains(text, "Error: ") && Contains(text, ".cu:") && !torch;
  if (!Contains(text, "Assertion `") || !Contains(text, "failed") || !(torch || paddle))
    return false;
  LogEvent event = MakeEvent("cuda_assert", line);
  AddText(&event, "assertion", Between(text, "Assertion `", "`", 200));
  const size_t source = text.find(".cu:");
  if (source != string_view::npos) {
    const size_t slash = text.rfind('/', source);
    const size_t begin = slash == string_view::npos ? 0 : slash + 1;
    AddText(&event, "at", CutText(text.substr(begin, text.find(':', source + 4) - begin), 120));
  }
  context.Emit(std::move(event));
  return true;
}

// What the runtime called the error; empty when the line reports none.
string_view ErrorIn(string_view text) {
  for (const string_view mark :
       {"Error: CUDA error: ", "Error: CUDA driver error: ", "what():  CUDA error: ",
        "terminated with exception: CUDA error: "}) {
    if (const auto rest = After(text, mark)) return *rest;
  }
  if (base::StartsWith(text, "CUDA error: ")) return *After(text, "CUDA error: ");
  // MXNet and Caffe: "Check failed: error == cudaSuccess (77 vs. 0)  an illegal memory access ..."
  if (Contains(text, "Check failed: ") && Contains(text, "cudaSuccess")) {
    return After(text, " vs. 0)").value_or("");
  }
  const bool cudnn = Contains(text, "Error: cuDNN error: ") || Contains(text, "CUDNN error(") ||
                     Contains(text, "Could not create cudnn handle: ");
  return cudnn && Contains(text, "CUDNN_STATUS_") ? text.substr(text.find("CUDNN_STATUS_")) : "";
}

bool ReadError(const EventLine& line, EventContext& context) {
  string_view what = ErrorIn(line.text);
  // Paddle: "(External) CUDA error(700), an illegal memory access was encountered."
  const auto code = IntAfter(line.text, "CUDA error(");
  if (what.empty() && code) what = After(line.text, "), ").value_or("");
  if (what.empty()) return false;
  LogEvent event = MakeEvent("cuda_error", line);
  AddNumber(&event, "code", code);
  AddText(&event, "error", CutText(what.substr(0, what.find_first_of(".(")), 120));
  context.Emit(std::move(event));
  return true;
}

bool Read(const EventLine& line, EventContext& context) {
  return ReadAssert(line, context) || ReadError(line, context);
}

constexpr auto kAnchors = std::to_array<string_view>(
    {"Assertion", "CUDAerror", "CUDAdrivererror", "CUDNNSTATUS", "cudaSuccess"});

}  // namespace

const EventFamily kCudaFamily = {"cuda", kAnchors, Read};

}  // namespace epochmeter::ingest::log
