// SPDX-License-Identifier: Apache-2.0
// Busy shares as the driver's utilisation counters give them: about 1 us, renewed each 200 ms.
#include <array>

#include "collect/nvml/device_source.h"
#include "collect/nvml/nvml_sources.h"

namespace epochmeter::collect::nvml {
namespace {

using model::Metric;
using model::MetricKind;
using model::Scope;

constexpr std::array kMetrics = {
    Metric({.name = "gpu.utilization",
            .label = "",
            .field = "utilization_ratio",
            .prometheus = "gpu_utilization_ratio",
            .unit = "1",
            .kind = MetricKind::kGauge,
            .scope = Scope::kGpu,
            .resolution = 0.01,
            .help = "Share of the driver's last 1/6 to 1 s in which at least one kernel ran; one "
                    "busy thread reads 1, so this is no measure of work.",
            .source = "nvmlDeviceGetUtilizationRates"}),
    Metric({.name = "gpu.memory.activity",
            .label = "",
            .field = "memory_activity_ratio",
            .prometheus = "gpu_memory_activity_ratio",
            .unit = "1",
            .kind = MetricKind::kGauge,
            .scope = Scope::kGpu,
            .resolution = 0.01,
            .help = "Share of the driver's last 1/6 to 1 s in which device memory was read or "
                    "written; not the part of memory in use.",
            .source = "nvmlDeviceGetUtilizationRates"}),
};

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
