// SPDX-License-Identifier: Apache-2.0
// Power: three readings of the same sensor, 1-2 us each, renewed each 100 ms. Energy over an epoch
// comes from gpu.energy; power points miss what lies between them.
#include <array>
#include <optional>

#include "collect/nvml/device_source.h"
#include "collect/nvml/nvml_sources.h"
#include "model/gpu_power_metrics.h"

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

constexpr std::array kLimitMetrics = {model::gpu::kPowerLimit, model::gpu::kPowerLimitRequested,
                                      model::gpu::kPowerLimitDefault, model::gpu::kPowerLimitMin,
                                      model::gpu::kPowerLimitMax};
enum LimitCall : size_t { kEnforced, kRequested, kDefault, kMin, kMax, kRange };
constexpr std::array<CallDef, 6> kLimitCalls = {{
    {"nvmlDeviceGetEnforcedPowerLimit", kEnforced, 1},
    {"NVML field 192 (POWER_REQUESTED_LIMIT)", kRequested, 1},
    {"NVML field 189 (POWER_DEFAULT_LIMIT)", kDefault, 1},
    {"NVML field 187 (POWER_MIN_LIMIT)", kMin, 1},
    {"NVML field 188 (POWER_MAX_LIMIT)", kMax, 1},
    {"nvmlDeviceGetPowerManagementLimitConstraints", kMin, 2},
}};
constexpr std::array<FieldRow, 4> kLimitFields = {{
    {kNvmlFieldPowerRequestedLimit, kRequested},
    {kNvmlFieldPowerDefaultLimit, kDefault},
    {kNvmlFieldPowerMinLimit, kMin},
    {kNvmlFieldPowerMaxLimit, kMax},
}};

// Whether the fields are there (R535+) or the older calls are asked.
struct LimitState {
  std::optional<bool> by_field;
};

void PutLimit(const Reading& reading, size_t metric, double milliwatts) {
  reading.PutInRange(metric, milliwatts / 1000.0, 0.001, kMostWatts);
}

void ReadLimitCalls(const Reading& reading) {
  const Api& api = reading.api;
  uint32_t milliwatts = 0;
  uint32_t most = 0;
  if (reading.Try(kRequested, api.power_limit, &milliwatts)) {
    PutLimit(reading, kRequested, milliwatts);
  }
  if (reading.Try(kDefault, api.default_power_limit, &milliwatts)) {
    PutLimit(reading, kDefault, milliwatts);
  }
  if (reading.Try(kRange, api.power_limit_range, &milliwatts, &most)) {
    PutLimit(reading, kMin, milliwatts);
    PutLimit(reading, kMax, most);
  }
}

// Others may change limits while the run goes on: read again each time.
void ReadLimits(const Reading& reading, LimitState& state) {
  uint32_t milliwatts = 0;
  if (reading.Try(kEnforced, reading.api.enforced_power_limit, &milliwatts)) {
    PutLimit(reading, kEnforced, milliwatts);
  }
  if (!state.by_field) {
    state.by_field = ProbeField(reading, kNvmlFieldPowerDefaultLimit) == kNvmlSuccess;
  }
  if (!*state.by_field) return ReadLimitCalls(reading);
  for (const FieldReading& field : ReadFields(reading, kLimitFields)) {
    PutLimit(reading, kRequested + field.row, field.value);
  }
}

base::Result<std::unique_ptr<Source>> MakeLimits(const SourceContext& context) {
  return MakeStatefulSource<LimitState>(context, kLimitMetrics, kLimitCalls, Tier::kSlow,
                                        &ReadLimits);
}

}  // namespace

const SourceDef kGpuPower{.name = "gpu.power",
                          .summary = "board power, present and mean of a second",
                          .metrics = kMetrics,
                          .tier = Tier::kTick,
                          .vital = true,
                          .Make = &Make};

const SourceDef kGpuLimits{
    .name = "gpu.limits",
    .summary = "power limits: in force, asked for, default, lowest and highest",
    .metrics = kLimitMetrics,
    .tier = Tier::kSlow,
    .Make = &MakeLimits};

}  // namespace epochmeter::collect::nvml
