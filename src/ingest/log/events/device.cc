// SPDX-License-Identifier: Apache-2.0
// A training that did not get the device it wanted, or waits for the other ranks to come up.
#include <algorithm>
#include <array>

#include "base/strings.h"
#include "ingest/log/events/event_text.h"
#include "ingest/log/events/families.h"

namespace epochmeter::ingest::log {
namespace {

using std::string_view;

// Paddle asks the other ranks every 3 s; for up to a minute that is how a start looks.
constexpr uint32_t kWaitsOfAStorm = 20;
constexpr int64_t kWaitSeconds = 3;

struct DeviceSentence {
  string_view words;
  string_view reason;
};
constexpr auto kSentences = std::to_array<DeviceSentence>(
    {{"Error: No CUDA GPUs are available", "no GPU is visible"},
     {"Error: Found no NVIDIA driver on your system", "no driver"},
     {"Error: Torch not compiled with CUDA enabled", "built without CUDA"},
     {"is not compiled with CUDA", "built without CUDA"},
     {"CUDA error: no CUDA-capable device is detected", "no GPU is visible"},
     {"CUDA error(100), no CUDA-capable device is detected", "no GPU is visible"},
     {"no CUDA-capable device is detected", "no GPU is visible"},
     {"CUDA error: invalid device ordinal", "there is no GPU of that number"},
     {"CUDA error(101), invalid device ordinal", "there is no GPU of that number"},
     {"CUDA driver version is insufficient for CUDA runtime version", "the driver is too old"},
     {"Error: The NVIDIA driver on your system is too old", "the driver is too old"},
     {"is not available, because CUDAPlace", "there is no GPU of that number"},
     {"Invalid CUDAPlace(", "there is no GPU of that number"}});

// A program reports an error, rather than a page or a comment speaks of one.
bool IsReport(string_view text) {
  return Contains(text, "Error") || Contains(text, "CUDA error(") || Contains(text, "Fatal") ||
         text.front() == 'E' || text.front() == 'F' || base::StartsWith(text, "(External)");
}

bool ReadDevice(const EventLine& line, EventContext& context) {
  const string_view message = MessageOf(line.text);
  const auto found =
      std::find_if(kSentences.begin(), kSentences.end(),
                   [&](const DeviceSentence& s) { return Contains(line.text, s.words); });
  if (found == kSentences.end() || message.empty()) return false;
  if (!IsReport(message) && !IsReport(line.text)) return false;
  LogEvent event = MakeEvent("device_not_bound", line);
  AddText(&event, "reason", found->reason);
  AddNumber(&event, "gpu", IntAfter(line.text, "CUDAPlace("));
  context.Emit(std::move(event));
  return true;
}

// "server not ready, wait 3 sec to retry..."
bool ReadWaiting(const EventLine& line, EventContext& context) {
  if (!Contains(line.text, "server not ready, wait ")) return false;
  EventMemory& memory = context.memory();
  if (memory.peers_not_ready == 0) memory.peers_not_ready_line = line.place.line;
  if (++memory.peers_not_ready != kWaitsOfAStorm) return true;
  LogEvent event = MakeEvent("peers_not_ready", line);
  event.place.line = memory.peers_not_ready_line;
  event.last_line = line.place.line;
  AddNumber(&event, "waits", std::optional<int64_t>(kWaitsOfAStorm));
  AddNumber(&event, "waited_s",
            std::optional(IntAfter(line.text, "wait ").value_or(kWaitSeconds) * kWaitsOfAStorm));
  context.Emit(std::move(event));
  return true;
}

bool Read(const EventLine& line, EventContext& context) {
  return ReadWaiting(line, context) || ReadDevice(line, context);
}

constexpr auto kAnchors = std::to_array<string_view>(
    {"NoCUDAGPUsareavailable", "FoundnoNVIDIAdriver", "notcompiledwithCUDA", "noCUDAcapabledevice",
     "invaliddeviceordinal", "CUDAdriverversionisinsufficient", "NVIDIAdriveronyoursystemistooold",
     "CUDAPlace", "servernotready"});

}  // namespace

const EventFamily kDeviceFamily = {"device", kAnchors, Read};

}  // namespace epochmeter::ingest::log
