// SPDX-License-Identifier: Apache-2.0
// Why clocks are held down: the reason mask of the instant (1 us, each tick), and the driver's own
// counters of time per reason, which a poll can't miss (slow tier: one of them costs 0.9 ms).
#include <array>

#include "collect/nvml/device_source.h"
#include "collect/nvml/nvml_sources.h"
#include "model/gpu_activity_metrics.h"

namespace epochmeter::collect::nvml {
namespace {

constexpr std::array kMetrics = {model::gpu::kThrottleReasons};
constexpr std::array<CallDef, 1> kCalls = {{{"nvmlDeviceGetCurrentClocksEventReasons", 0, 1}}};

void Read(const Reading& reading) {
  uint64_t mask = 0;
  if (!reading.Try(0, reading.api.clock_event_reasons, &mask)) return;
  // Every mask below 2^52 is exact in a double; a mask with a higher bit is a sentinel.
  reading.PutInRange(0, static_cast<double>(mask), 0, 4503599627370496.0);
}

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  return MakeDeviceSource(context, kMetrics, kCalls, Tier::kTick, &Read);
}

constexpr std::array kTimeMetrics = {
    model::gpu::kThrottlePower, model::gpu::kThrottleThermal, model::gpu::kThrottleBoard,
    model::gpu::kThrottleLowUtilization, model::gpu::kThrottleReliability};
constexpr std::array<CallDef, 5> kTimeCalls = {{
    {"NVML field 74 (PERF_POLICY_POWER)", 0, 1},
    {"NVML field 75 (PERF_POLICY_THERMAL)", 1, 1},
    {"NVML field 77 (PERF_POLICY_BOARD_LIMIT)", 2, 1},
    {"NVML field 78 (PERF_POLICY_LOW_UTILIZATION)", 3, 1},
    {"NVML field 79 (PERF_POLICY_RELIABILITY)", 4, 1},
}};
constexpr std::array<FieldRow, 5> kFields = {{
    {kNvmlFieldPerfPolicyPower, 0},
    {kNvmlFieldPerfPolicyThermal, 1},
    {kNvmlFieldPerfPolicyBoardLimit, 2},
    {kNvmlFieldPerfPolicyLowUtilization, 3},
    {kNvmlFieldPerfPolicyReliability, 4},
}};

void ReadTimes(const Reading& reading) {
  constexpr double kMostSeconds = 1e9;  // 30 years since the driver was loaded
  for (const FieldReading& field : ReadFields(reading, kFields)) {
    reading.PutInRange(field.row, field.value / 1e9, 0, kMostSeconds);
  }
}

base::Result<std::unique_ptr<Source>> MakeTimes(const SourceContext& context) {
  return MakeDeviceSource(context, kTimeMetrics, kTimeCalls, Tier::kSlow, &ReadTimes);
}

}  // namespace

const SourceDef kGpuThrottle{.name = "gpu.throttle",
                             .summary = "reasons that hold clocks down, at the instant",
                             .metrics = kMetrics,
                             .tier = Tier::kTick,
                             .Make = &Make};

const SourceDef kGpuThrottleTime{.name = "gpu.throttle_time",
                                 .summary = "time for which each reason held clocks down",
                                 .metrics = kTimeMetrics,
                                 .tier = Tier::kSlow,
                                 .Make = &MakeTimes};

}  // namespace epochmeter::collect::nvml
