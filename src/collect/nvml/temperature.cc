// SPDX-License-Identifier: Apache-2.0
// Temperatures of the GPU and of its memory: 1-2 us each.
#include <array>

#include "collect/nvml/device_source.h"
#include "collect/nvml/nvml_sources.h"
#include "model/gpu_health_metrics.h"

namespace epochmeter::collect::nvml {
namespace {

constexpr std::array kMetrics = {model::gpu::kTemperature, model::gpu::kMemoryTemperature};
constexpr std::array<CallDef, 2> kCalls = {{
    {"nvmlDeviceGetTemperature", 0, 1},
    {"NVML field 82 (MEMORY_TEMP)", 1, 1},
}};
constexpr std::array<FieldRow, 1> kFields = {{{kNvmlFieldMemoryTemp, 1}}};

constexpr double kMostCelsius = 150;

// The newer call where the driver has and accepts it, else the older one.
NvmlReturn GpuCelsius(const Reading& reading, int32_t* celsius) {
  NvmlReturn rc = kNvmlFunctionNotFound;
  if (reading.api.temperature_v != nullptr) {
    NvmlTemperatureV1 request{};
    request.version = kNvmlTemperatureV1Version;
    request.sensor = kNvmlTemperatureGpu;
    rc = reading.api.temperature_v(reading.device.handle, &request);
    *celsius = request.temperature_c;
  }
  const bool refused =
      rc == kNvmlFunctionNotFound || rc == kNvmlArgumentVersionMismatch || rc == kNvmlNotSupported;
  if (!refused || reading.api.temperature == nullptr) return rc;
  uint32_t older = 0;
  rc = reading.api.temperature(reading.device.handle, kNvmlTemperatureGpu, &older);
  *celsius = static_cast<int32_t>(older);
  return rc;
}

void Read(const Reading& reading) {
  const int64_t t_ns = reading.out.t_ns;
  int32_t celsius = 0;
  if (reading.group.Due(reading.device, 0, t_ns) &&
      reading.group.Took(reading.device, 0, GpuCelsius(reading, &celsius), t_ns)) {
    reading.PutInRange(0, celsius, -50, kMostCelsius);
  }
  for (const FieldReading& field : ReadFields(reading, kFields)) {
    // Boards without the sensor answer 0 and success.
    if (field.value == 0) {
      reading.group.Absent(reading.device, 1, "the driver shows 0 degrees: no memory sensor", t_ns);
    } else {
      reading.PutInRange(1, field.value, -50, kMostCelsius);
    }
  }
}

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  return MakeDeviceSource(context, kMetrics, kCalls, Tier::kTick, &Read);
}

constexpr std::array kLimitMetrics = {model::gpu::kTemperatureSlowdown,
                                      model::gpu::kTemperatureShutdown,
                                      model::gpu::kTemperatureMargin,
                                      model::gpu::kMarginSlowdown,
                                      model::gpu::kMarginShutdown,
                                      model::gpu::kMarginMemory,
                                      model::gpu::kMarginGpu};
enum LimitCall : size_t { kSlowdown, kShutdown, kMargin, kFirstField };
constexpr std::array<CallDef, 7> kLimitCalls = {{
    {"nvmlDeviceGetTemperatureThreshold(SLOWDOWN)", kSlowdown, 1},
    {"nvmlDeviceGetTemperatureThreshold(SHUTDOWN)", kShutdown, 1},
    {"nvmlDeviceGetMarginTemperature", kMargin, 1},
    {"NVML field 194 (SLOWDOWN_TLIMIT)", kFirstField, 1},
    {"NVML field 193 (SHUTDOWN_TLIMIT)", kFirstField + 1, 1},
    {"NVML field 195 (MEM_MAX_TLIMIT)", kFirstField + 2, 1},
    {"NVML field 196 (GPU_MAX_TLIMIT)", kFirstField + 3, 1},
}};
constexpr std::array<FieldRow, 4> kLimitFields = {{
    {kNvmlFieldSlowdownTlimit, kFirstField},
    {kNvmlFieldShutdownTlimit, kFirstField + 1},
    {kNvmlFieldMemMaxTlimit, kFirstField + 2},
    {kNvmlFieldGpuMaxTlimit, kFirstField + 3},
}};

void ReadLimits(const Reading& reading) {
  constexpr std::array<uint32_t, 2> kThresholds = {kNvmlThresholdSlowdown, kNvmlThresholdShutdown};
  for (size_t i = 0; i < kThresholds.size(); ++i) {
    uint32_t celsius = 0;
    if (!reading.Try(i, reading.api.temperature_threshold, kThresholds[i], &celsius)) continue;
    reading.PutInRange(i, celsius, 1, kMostCelsius);
  }
  NvmlMarginTemperatureV1 margin{.version = kNvmlMarginTemperatureV1Version, .margin_c = 0};
  if (reading.Try(kMargin, reading.api.margin_temperature, &margin)) {
    reading.PutInRange(kMargin, margin.margin_c, -kMostCelsius, kMostCelsius);
  }
  for (const FieldReading& field : ReadFields(reading, kLimitFields)) {
    reading.PutInRange(kFirstField + field.row, field.value, -kMostCelsius, kMostCelsius);
  }
}

base::Result<std::unique_ptr<Source>> MakeLimits(const SourceContext& context) {
  return MakeDeviceSource(context, kLimitMetrics, kLimitCalls, Tier::kRare, &ReadLimits);
}

}  // namespace

const SourceDef kGpuTemperatureLimits{
    .name = "gpu.temperature_limits",
    .summary = "temperatures at which clocks fall, and the degrees until then",
    .metrics = kLimitMetrics,
    .tier = Tier::kRare,
    .at_epochs = false,
    .longest_ns = 600 * base::kNsPerSecond,
    .Make = &MakeLimits};

const SourceDef kGpuTemperature{.name = "gpu.temperature",
                                .summary = "temperatures of GPU and memory",
                                .metrics = kMetrics,
                                .tier = Tier::kTick,
                                .vital = true,
                                .Make = &Make};

}  // namespace epochmeter::collect::nvml
