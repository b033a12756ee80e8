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

constexpr uint32_t kStuckPercent = 100;
constexpr uint64_t kIdleReason = 1;
constexpr int kContradictions = 5;

struct State {
  int contradictions = 0;  // in a row
};

// Utilisation may stick at 100 % after a suspend or a killed job, while the same driver says that
// clocks are low because the GPU is idle. Said, not altered.
void CrossCheck(const Reading& reading, const NvmlUtilization& percent, State& state) {
  uint64_t reasons = 0;
  const auto call = reading.api.clock_event_reasons;
  const bool contradicts = percent.gpu == kStuckPercent && call != nullptr &&
                           call(reading.device.handle, &reasons) == kNvmlSuccess &&
                           (reasons & kIdleReason) != 0;
  state.contradictions = contradicts ? state.contradictions + 1 : 0;
  if (state.contradictions < kContradictions) return;
  reading.group.NoteImplausible(reading.device, 0,
                                "100 % while the driver says that the GPU is idle: it is stuck",
                                reading.out.t_ns);
}

void Read(const Reading& reading, State& state) {
  NvmlUtilization percent{};
  if (!reading.Try(0, reading.api.utilization, &percent)) return;
  reading.PutInRange(0, percent.gpu / 100.0, 0, 1);
  reading.PutInRange(1, percent.memory / 100.0, 0, 1);
  CrossCheck(reading, percent, state);
}

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  return MakeStatefulSource<State>(context, kMetrics, kCalls, Tier::kTick, &Read);
}

}  // namespace

const SourceDef kGpuUtilization{.name = "gpu.utilization",
                                .summary = "GPU and memory controller busy shares",
                                .metrics = kMetrics,
                                .tier = Tier::kTick,
                                .vital = true,
                                .Make = &Make};

}  // namespace epochmeter::collect::nvml
