// SPDX-License-Identifier: Apache-2.0
// Fans: 0.14 to 0.36 ms, also to say that a passive board has none, so slow tier and latched.
#include <algorithm>
#include <array>

#include "collect/nvml/device_source.h"
#include "collect/nvml/nvml_sources.h"
#include "model/gpu_health_metrics.h"

namespace epochmeter::collect::nvml {
namespace {

constexpr std::array kMetrics = {model::gpu::kFanSpeed, model::gpu::kFanRpm};
enum Call : size_t { kSpeed, kRpm };
constexpr std::array<CallDef, 2> kCalls = {{
    {"nvmlDeviceGetFanSpeed", kSpeed, 1},
    {"nvmlDeviceGetFanSpeedRPM", kRpm, 1},
}};
constexpr uint32_t kMostFans = 16;

// The fastest fan; the older call knows the first one only.
NvmlReturn FastestPercent(const Reading& reading, uint32_t fans, uint32_t* percent) {
  const Api& api = reading.api;
  if (api.fan_speed_v2 == nullptr) {
    return api.fan_speed != nullptr ? api.fan_speed(reading.device.handle, percent)
                                    : NvmlReturn{kNvmlFunctionNotFound};
  }
  NvmlReturn rc = kNvmlNotSupported;
  for (uint32_t fan = 0; fan < fans; ++fan) {
    uint32_t one = 0;
    rc = api.fan_speed_v2(reading.device.handle, fan, &one);
    if (rc != kNvmlSuccess) return rc;
    *percent = std::max(*percent, one);
  }
  return rc;
}

NvmlReturn FastestRpm(const Reading& reading, uint32_t fans, uint32_t* rpm) {
  if (reading.api.fan_rpm == nullptr) return kNvmlFunctionNotFound;
  NvmlReturn rc = kNvmlNotSupported;
  for (uint32_t fan = 0; fan < fans; ++fan) {
    NvmlFanSpeedInfoV1 info{.version = kNvmlFanSpeedInfoV1Version, .fan = fan, .rpm = 0};
    rc = reading.api.fan_rpm(reading.device.handle, &info);
    if (rc != kNvmlSuccess) return rc;
    *rpm = std::max(*rpm, info.rpm);
  }
  return rc;
}

void Read(const Reading& reading) {
  const int64_t t_ns = reading.out.t_ns;
  const bool speed = reading.group.Due(reading.device, kSpeed, t_ns);
  const bool rpm = reading.group.Due(reading.device, kRpm, t_ns);
  if (!speed && !rpm) return;
  uint32_t fans = 1;  // a driver that can't count them is asked for the first
  const auto count = reading.api.fan_count;
  if (count != nullptr && count(reading.device.handle, &fans) != kNvmlSuccess) fans = 1;
  fans = std::min(fans, kMostFans);
  uint32_t value = 0;
  if (speed &&
      reading.group.Took(reading.device, kSpeed, FastestPercent(reading, fans, &value), t_ns)) {
    constexpr double kMost = 2;  // more than 1 is possible, and so is garbage
    reading.PutInRange(kSpeed, value / 100.0, 0, kMost);
  }
  value = 0;
  if (rpm && reading.group.Took(reading.device, kRpm, FastestRpm(reading, fans, &value), t_ns)) {
    constexpr double kMost = 50000;
    reading.PutInRange(kRpm, value, 0, kMost);
  }
}

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  return MakeDeviceSource(context, kMetrics, kCalls, Tier::kSlow, &Read);
}

}  // namespace

const SourceDef kGpuFan{.name = "gpu.fan",
                        .summary = "speed of the fastest fan",
                        .metrics = kMetrics,
                        .tier = Tier::kSlow,
                        .at_epochs = false,
                        .Make = &Make};

}  // namespace epochmeter::collect::nvml
