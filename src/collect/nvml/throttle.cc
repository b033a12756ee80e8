// SPDX-License-Identifier: Apache-2.0
// Why clocks are held down: the reason mask of the instant (1 us, each tick), and the driver's own
// counters of time per reason, which a poll can't miss (slow tier: one of them costs 0.9 ms).
#include <array>

#include "collect/nvml/device_source.h"
#include "collect/nvml/nvml_sources.h"

namespace epochmeter::collect::nvml {
namespace {

using model::MetricDef;
using model::MetricKind;
using model::Scope;

constexpr std::array kMetrics = {
    model::Metric({.name = "gpu.throttle.reasons",
                   .label = "",
                   .field = "throttle_reasons",
                   .prometheus = "gpu_throttle_reasons",
                   .unit = "1",
                   .kind = MetricKind::kState,
                   .scope = Scope::kGpu,
                   .resolution = 1,
                   .help = "Bit mask of the instant: 1 idle, 2 application clocks, 4 power cap, 8 "
                           "hardware slowdown, 16 sync boost, 32 software thermal, 64 hardware "
                           "thermal, 128 power brake, 256 display; other bits are kept.",
                   .source = "nvmlDeviceGetCurrentClocksEventReasons"}),
};
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

consteval MetricDef Seconds(const char* label, const char* field, const char* help,
                            const char* source) {
  return model::Metric({.name = "gpu.throttle.time",
                        .label = label,
                        .field = field,
                        .prometheus = "gpu_throttle_seconds_total",
                        .unit = "s",
                        .kind = MetricKind::kCounter,
                        .scope = Scope::kGpu,
                        .resolution = 1e-6,
                        .help = help,
                        .source = source});
}

constexpr std::array kTimeMetrics = {
    Seconds("reason=power_cap", "throttle_power_cap_s",
            "Time for which the power cap lowered clocks; normal under full load.",
            "NVML field 74"),
    Seconds("reason=thermal", "throttle_thermal_s", "Time for which temperature lowered clocks.",
            "NVML field 75"),
    Seconds("reason=board_limit", "throttle_board_limit_s",
            "Time for which the board's power or current limit lowered clocks.", "NVML field 77"),
    Seconds("reason=reliability", "throttle_reliability_s",
            "Time for which reliability voltage lowered clocks.", "NVML field 79"),
};
constexpr std::array<CallDef, 4> kTimeCalls = {{
    {"NVML field 74 (PERF_POLICY_POWER)", 0, 1},
    {"NVML field 75 (PERF_POLICY_THERMAL)", 1, 1},
    {"NVML field 77 (PERF_POLICY_BOARD_LIMIT)", 2, 1},
    {"NVML field 79 (PERF_POLICY_RELIABILITY)", 3, 1},
}};
constexpr std::array<FieldRow, 4> kFields = {{
    {kNvmlFieldPerfPolicyPower, 0},
    {kNvmlFieldPerfPolicyThermal, 1},
    {kNvmlFieldPerfPolicyBoardLimit, 2},
    {kNvmlFieldPerfPolicyReliability, 3},
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
