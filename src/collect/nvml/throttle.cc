// SPDX-License-Identifier: Apache-2.0
// Why clocks are held down: the reason mask of the instant (1 us, each tick), and the driver's own
// counters of time per reason, which a poll can't miss (slow tier: one of them costs 0.9 ms).
#include <array>
#include <optional>

#include "collect/nvml/device_source.h"
#include "collect/nvml/nvml_sources.h"
#include "model/gpu_activity_metrics.h"

namespace epochmeter::collect::nvml {
namespace {

namespace gpu = model::gpu;

constexpr std::array kMetrics = {gpu::kThrottleReasons};
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

constexpr std::array kTimeMetrics = {gpu::kThrottlePower,       gpu::kThrottleThermal,
                                     gpu::kThrottleBoard,       gpu::kThrottleLowUtilization,
                                     gpu::kThrottleReliability, gpu::kThrottleSyncBoost,
                                     gpu::kThrottleBelowApp,    gpu::kThrottleBelowBase};

struct Policy {
  const char* field_name;
  const char* call_name;
  uint32_t field;
  uint32_t policy;
};
constexpr std::array<Policy, 8> kPolicies = {{
    {"NVML field 74 (PERF_POLICY_POWER)", "nvmlDeviceGetViolationStatus(POWER)",
     kNvmlFieldPerfPolicyPower, kNvmlPolicyPower},
    {"NVML field 75 (PERF_POLICY_THERMAL)", "nvmlDeviceGetViolationStatus(THERMAL)",
     kNvmlFieldPerfPolicyThermal, kNvmlPolicyThermal},
    {"NVML field 77 (PERF_POLICY_BOARD_LIMIT)", "nvmlDeviceGetViolationStatus(BOARD_LIMIT)",
     kNvmlFieldPerfPolicyBoardLimit, kNvmlPolicyBoardLimit},
    {"NVML field 78 (PERF_POLICY_LOW_UTILIZATION)", "nvmlDeviceGetViolationStatus(LOW_UTILIZATION)",
     kNvmlFieldPerfPolicyLowUtilization, kNvmlPolicyLowUtilization},
    {"NVML field 79 (PERF_POLICY_RELIABILITY)", "nvmlDeviceGetViolationStatus(RELIABILITY)",
     kNvmlFieldPerfPolicyReliability, kNvmlPolicyReliability},
    {"NVML field 76 (PERF_POLICY_SYNC_BOOST)", "nvmlDeviceGetViolationStatus(SYNC_BOOST)",
     kNvmlFieldPerfPolicySyncBoost, kNvmlPolicySyncBoost},
    {"NVML field 80 (PERF_POLICY_TOTAL_APP_CLOCKS)", "nvmlDeviceGetViolationStatus(APP_CLOCKS)",
     kNvmlFieldPerfPolicyAppClocks, kNvmlPolicyAppClocks},
    {"NVML field 81 (PERF_POLICY_TOTAL_BASE_CLOCKS)", "nvmlDeviceGetViolationStatus(BASE_CLOCKS)",
     kNvmlFieldPerfPolicyBaseClocks, kNvmlPolicyBaseClocks},
}};
constexpr size_t kCount = kPolicies.size();

// Entries [0, kCount) are the fields, [kCount, 2 kCount) the older calls, for the same metrics.
constexpr auto kTimeCalls = [] {
  std::array<CallDef, 2 * kCount> calls{};
  for (size_t i = 0; i < kCount; ++i) {
    calls[i] = {kPolicies[i].field_name, static_cast<uint8_t>(i), 1};
    calls[kCount + i] = {kPolicies[i].call_name, static_cast<uint8_t>(i), 1};
  }
  return calls;
}();
constexpr auto kFields = [] {
  std::array<FieldRow, kCount> rows{};
  for (size_t i = 0; i < kCount; ++i) rows[i] = {.field = kPolicies[i].field, .call = i};
  return rows;
}();

constexpr double kMostSeconds = 1e9;  // 30 years since the driver was loaded

// Whether the counters are read as fields; old drivers have them as calls only.
struct TimeState {
  std::optional<bool> by_field;
};

void ReadTimes(const Reading& reading, TimeState& state) {
  if (!state.by_field) {
    state.by_field = reading.api.violation == nullptr ||
                     ProbeField(reading, kNvmlFieldPerfPolicyPower) == kNvmlSuccess;
  }
  if (*state.by_field) {
    for (const FieldReading& field : ReadFields(reading, kFields)) {
      reading.PutInRange(field.row, field.value / 1e9, 0, kMostSeconds);
    }
    return;
  }
  for (size_t i = 0; i < kCount; ++i) {
    NvmlViolationTime time{};
    if (!reading.Try(kCount + i, reading.api.violation, kPolicies[i].policy, &time)) continue;
    reading.PutInRange(i, static_cast<double>(time.violation_ns) / 1e9, 0, kMostSeconds);
  }
}

base::Result<std::unique_ptr<Source>> MakeTimes(const SourceContext& context) {
  return MakeStatefulSource<TimeState>(context, kTimeMetrics, kTimeCalls, Tier::kSlow, &ReadTimes);
}

}  // namespace

const SourceDef kGpuThrottle{.name = "gpu.throttle",
                             .summary = "reasons that hold clocks down, at the instant",
                             .metrics = kMetrics,
                             .tier = Tier::kTick,
                             .vital = true,
                             .Make = &Make};

const SourceDef kGpuThrottleTime{.name = "gpu.throttle_time",
                                 .summary = "time for which each reason held clocks down",
                                 .metrics = kTimeMetrics,
                                 .tier = Tier::kSlow,
                                 .longest_ns = 120 * base::kNsPerSecond,
                                 .Make = &MakeTimes};

}  // namespace epochmeter::collect::nvml
