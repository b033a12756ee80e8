// SPDX-License-Identifier: Apache-2.0
// The energy counter, the right base of energy per epoch. It costs 3.3 ms a call, the dearest of
// the common ones: slow tier, and read at epoch ends.
#include <fmt/format.h>

#include <array>

#include "collect/nvml/device_source.h"
#include "collect/nvml/nvml_sources.h"
#include "model/gpu_metrics.h"

namespace epochmeter::collect::nvml {
namespace {

constexpr std::array kMetrics = {model::gpu::kEnergy};
constexpr std::array<CallDef, 1> kCalls = {{{"nvmlDeviceGetTotalEnergyConsumption", 0, 1}}};

// Over handles: a reset of the GPU comes with a new one.
struct Last {
  double joules = 0;
  void NewHandle() {}
};

// The counter is recorded as it is. A fall is a reset; what was used around it can't be known.
void Read(const Reading& reading, Last& last) {
  uint64_t millijoules = 0;
  if (!reading.Try(0, reading.api.total_energy, &millijoules)) return;
  // 10 kW for 30 years; the driver's "no value" numbers lie above.
  constexpr double kMostJoules = 1e13;
  const double joules = static_cast<double>(millijoules) / 1000.0;
  reading.PutInRange(0, joules, 0, kMostJoules);
  if (joules > kMostJoules) return;
  if (joules < last.joules) {
    reading.session.TellLoss(
        {.t_ns = reading.out.t_ns,
         .severity = model::LossSeverity::kDataLoss,
         .kind = "counter.reset",
         .count = 1,
         .detail = fmt::format("energy counter of {} fell from {:.0f} to {:.0f} J: the driver was "
                               "loaded again or the GPU reset",
                               reading.device.uuid, last.joules, joules),
         .help = "Energy used between the two readings is in neither; gpu.power fills it."});
  }
  last.joules = joules;
}

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  return MakeStatefulSource<Last>(context, kMetrics, kCalls, Tier::kSlow, &Read);
}

}  // namespace

const SourceDef kGpuEnergy{.name = "gpu.energy",
                           .summary = "energy counter of the board",
                           .metrics = kMetrics,
                           .tier = Tier::kSlow,
                           .longest_ns = 120 * base::kNsPerSecond,
                           .Make = &Make};

}  // namespace epochmeter::collect::nvml
