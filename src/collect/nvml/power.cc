// SPDX-License-Identifier: Apache-2.0
// Power: three readings of the same sensor, 1-2 us each, renewed each 100 ms. Energy over an epoch
// comes from gpu.energy; power points miss what lies between them.
#include <array>

#include "collect/nvml/device_source.h"
#include "collect/nvml/nvml_sources.h"
#include "model/gpu_metrics.h"

namespace epochmeter::collect::nvml {
namespace {

constexpr std::array kMetrics = {model::gpu::kPower, model::gpu::kPowerInstant,
                                 model::gpu::kPowerAverage};

constexpr std::array<CallDef, 3> kCalls = {{
    {"nvmlDeviceGetPowerUsage", 0, 1},
    {"NVML field 186 (POWER_INSTANT)", 1, 1},
    {"NVML field 185 (POWER_AVERAGE)", 2, 1},
}};
constexpr std::array<FieldRow, 2> kFields = {{
    {kNvmlFieldPowerInstant, 1},
    {kNvmlFieldPowerAverage, 2},
}};

// No board draws 20 kW; the driver's "no value" numbers are far above.
constexpr double kMostWatts = 20000;

void Read(const Reading& reading) {
  uint32_t milliwatts = 0;
  if (reading.Try(0, reading.api.power_usage, &milliwatts)) {
    reading.PutInRange(0, milliwatts / 1000.0, 0, kMostWatts);
  }
  for (const FieldReading& field : ReadFields(reading, kFields)) {
    reading.PutInRange(1 + field.row, field.value / 1000.0, 0, kMostWatts);
  }
}

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  return MakeDeviceSource(context, kMetrics, kCalls, Tier::kTick, &Read);
}

constexpr std::array kLimitMetrics = {model::gpu::kPowerLimit};
constexpr std::array<CallDef, 1> kLimitCalls = {{{"nvmlDeviceGetEnforcedPowerLimit", 0, 1}}};

void ReadLimit(const Reading& reading) {
  uint32_t milliwatts = 0;
  if (!reading.Try(0, reading.api.enforced_power_limit, &milliwatts)) return;
  reading.PutInRange(0, milliwatts / 1000.0, 0.001, kMostWatts);
}

base::Result<std::unique_ptr<Source>> MakeLimits(const SourceContext& context) {
  return MakeDeviceSource(context, kLimitMetrics, kLimitCalls, Tier::kSlow, &ReadLimit);
}

}  // namespace

const SourceDef kGpuPower{.name = "gpu.power",
                          .summary = "board power, present and mean of a second",
                          .metrics = kMetrics,
                          .tier = Tier::kTick,
                          .Make = &Make};

const SourceDef kGpuLimits{.name = "gpu.limits",
                           .summary = "power limit in force",
                           .metrics = kLimitMetrics,
                           .tier = Tier::kSlow,
                           .Make = &MakeLimits};

}  // namespace epochmeter::collect::nvml
