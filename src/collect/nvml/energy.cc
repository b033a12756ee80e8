// SPDX-License-Identifier: Apache-2.0
// The energy counter, the right base of energy per epoch. It costs 3.3 ms a call, the dearest of
// the common ones: slow tier, and read at epoch ends.
#include <array>

#include "collect/nvml/device_source.h"
#include "collect/nvml/nvml_sources.h"
#include "model/gpu_metrics.h"

namespace epochmeter::collect::nvml {
namespace {

constexpr std::array kMetrics = {model::gpu::kEnergy};
constexpr std::array<CallDef, 1> kCalls = {{{"nvmlDeviceGetTotalEnergyConsumption", 0, 1}}};

void Read(const Reading& reading) {
  uint64_t millijoules = 0;
  if (!reading.Try(0, reading.api.total_energy, &millijoules)) return;
  // 10 kW for 30 years; the driver's "no value" numbers lie above.
  constexpr double kMostJoules = 1e13;
  reading.PutInRange(0, static_cast<double>(millijoules) / 1000.0, 0, kMostJoules);
}

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  return MakeDeviceSource(context, kMetrics, kCalls, Tier::kSlow, &Read);
}

}  // namespace

const SourceDef kGpuEnergy{.name = "gpu.energy",
                           .summary = "energy counter of the board",
                           .metrics = kMetrics,
                           .tier = Tier::kSlow,
                           .Make = &Make};

}  // namespace epochmeter::collect::nvml
