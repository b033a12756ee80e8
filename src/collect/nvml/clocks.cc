// SPDX-License-Identifier: Apache-2.0
// Clock rates and performance state: 1 to 2 us each. Their bounds don't change: slow tier.
#include <array>

#include "collect/nvml/device_source.h"
#include "collect/nvml/nvml_sources.h"
#include "model/gpu_health_metrics.h"

namespace epochmeter::collect::nvml {
namespace {

namespace gpu = model::gpu;

constexpr std::array kMetrics = {gpu::kSmClock, gpu::kMemoryClock, gpu::kGraphicsClock,
                                 gpu::kVideoClock, gpu::kPerformanceState};
constexpr size_t kPstate = 4;
constexpr std::array<CallDef, 5> kCalls = {{
    {"nvmlDeviceGetClockInfo(SM)", 0, 1},
    {"nvmlDeviceGetClockInfo(MEM)", 1, 1},
    {"nvmlDeviceGetClockInfo(GRAPHICS)", 2, 1},
    {"nvmlDeviceGetClockInfo(VIDEO)", 3, 1},
    {"nvmlDeviceGetPerformanceState", kPstate, 1},
}};
constexpr std::array<uint32_t, 4> kDomains = {kNvmlClockSm, kNvmlClockMem, kNvmlClockGraphics,
                                              kNvmlClockVideo};
constexpr double kMostHertz = 1e11;

void Read(const Reading& reading) {
  for (size_t i = 0; i < kDomains.size(); ++i) {
    uint32_t megahertz = 0;
    if (!reading.Try(i, reading.api.clock, kDomains[i], &megahertz)) continue;
    reading.PutInRange(i, megahertz * 1e6, 0, kMostHertz);
  }
  uint32_t state = 0;
  constexpr double kSlowest = 15;  // 32 stands for "unknown"
  if (reading.Try(kPstate, reading.api.performance_state, &state)) {
    reading.PutInRange(kPstate, state, 0, kSlowest);
  }
}

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  return MakeDeviceSource(context, kMetrics, kCalls, Tier::kTick, &Read);
}

constexpr std::array kMaxMetrics = {gpu::kMaxSmClock, gpu::kMaxMemoryClock, gpu::kMaxGraphicsClock};
constexpr std::array<CallDef, 3> kMaxCalls = {{
    {"nvmlDeviceGetMaxClockInfo(SM)", 0, 1},
    {"nvmlDeviceGetMaxClockInfo(MEM)", 1, 1},
    {"nvmlDeviceGetMaxClockInfo(GRAPHICS)", 2, 1},
}};

void ReadMax(const Reading& reading) {
  for (size_t i = 0; i < kMaxCalls.size(); ++i) {
    uint32_t megahertz = 0;
    if (!reading.Try(i, reading.api.max_clock, kDomains[i], &megahertz)) continue;
    reading.PutInRange(i, megahertz * 1e6, 1e6, kMostHertz);
  }
}

base::Result<std::unique_ptr<Source>> MakeMax(const SourceContext& context) {
  return MakeDeviceSource(context, kMaxMetrics, kMaxCalls, Tier::kRare, &ReadMax);
}

}  // namespace

const SourceDef kGpuClocks{
    .name = "gpu.clocks",
    .summary = "clocks of SMs, memory, graphics and video, performance state",
    .metrics = kMetrics,
    .tier = Tier::kTick,
    .vital = true,
    .Make = &Make};

const SourceDef kGpuMaxClocks{.name = "gpu.max_clocks",
                              .summary = "highest clocks",
                              .metrics = kMaxMetrics,
                              .tier = Tier::kRare,
                              .at_epochs = false,
                              .longest_ns = 600 * base::kNsPerSecond,
                              .Make = &MakeMax};

}  // namespace epochmeter::collect::nvml
