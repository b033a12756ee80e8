// SPDX-License-Identifier: Apache-2.0
// Busy shares as the driver's utilisation counters give them: about 1 us, renewed each 200 ms.
#include <array>

#include "collect/nvml/device_source.h"
#include "collect/nvml/nvml_sources.h"
#include "model/gpu_metrics.h"

namespace epochmeter::collect::nvml {
namespace {

constexpr std::array kMetrics = {model::gpu::kUtilization, model::gpu::kMemoryActivity};
constexpr std::array<CallDef, 1> kCalls = {{{"nvmlDeviceGetUtilizationRates", 0, 2}}};

void Read(const Reading& reading) {
  NvmlUtilization percent{};
  if (!reading.Try(0, reading.api.utilization, &percent)) return;
  reading.PutInRange(0, percent.gpu / 100.0, 0, 1);
  reading.PutInRange(1, percent.memory / 100.0, 0, 1);
}

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  return MakeDeviceSource(context, kMetrics, kCalls, Tier::kTick, &Read);
}

}  // namespace

const SourceDef kGpuUtilization{.name = "gpu.utilization",
                                .summary = "GPU and memory controller busy shares",
                                .metrics = kMetrics,
                                .tier = Tier::kTick,
                                .Make = &Make};

}  // namespace epochmeter::collect::nvml
