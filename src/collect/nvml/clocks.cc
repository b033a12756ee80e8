// SPDX-License-Identifier: Apache-2.0
// Clock rates: about 2 us each.
#include <array>

#include "collect/nvml/device_source.h"
#include "collect/nvml/nvml_sources.h"
#include "model/gpu_metrics.h"

namespace epochmeter::collect::nvml {
namespace {

constexpr std::array kMetrics = {model::gpu::kSmClock, model::gpu::kMemoryClock};
constexpr std::array<CallDef, 2> kCalls = {{
    {"nvmlDeviceGetClockInfo(SM)", 0, 1},
    {"nvmlDeviceGetClockInfo(MEM)", 1, 1},
}};
constexpr std::array<uint32_t, 2> kDomains = {kNvmlClockSm, kNvmlClockMem};

void Read(const Reading& reading) {
  for (size_t i = 0; i < kDomains.size(); ++i) {
    uint32_t megahertz = 0;
    if (!reading.Try(i, reading.api.clock, kDomains[i], &megahertz)) continue;
    reading.PutInRange(i, megahertz * 1e6, 0, 1e11);
  }
}

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  return MakeDeviceSource(context, kMetrics, kCalls, Tier::kTick, &Read);
}

}  // namespace

const SourceDef kGpuClocks{.name = "gpu.clocks",
                           .summary = "SM and memory clocks",
                           .metrics = kMetrics,
                           .tier = Tier::kTick,
                           .Make = &Make};

}  // namespace epochmeter::collect::nvml
