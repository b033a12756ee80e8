// SPDX-License-Identifier: Apache-2.0
// What lay between two ticks: figures over the driver's buffers of past readings. Power is read
// each second (0.55 ms; the buffer holds 2.3 s), utilisation each 10 s (2.6 ms; 14 s). Why figures
// and not the readings themselves: docs/design/0002-backfilled-samples.md.
#include <algorithm>
#include <array>
#include <vector>

#include "base/clock.h"
#include "collect/nvml/device_source.h"
#include "collect/nvml/nvml_sources.h"
#include "collect/nvml/sample_buffer.h"
#include "model/gpu_power_metrics.h"

namespace epochmeter::collect::nvml {
namespace {

namespace gpu = model::gpu;

// Reads what is new in a buffer, in units of `scale`; readings out of range are dropped and
// counted. False when the call failed or nothing is new.
bool ReadNew(const Reading& reading, size_t call, size_t first_metric, SampleBuffer& buffer,
             double scale, double most, std::vector<double>* values) {
  const int64_t t_ns = reading.out.t_ns;
  if (!reading.group.Due(reading.device, call, t_ns)) return false;
  const NvmlReturn rc = buffer.Read(reading.api, reading.device.handle, values);
  if (!reading.group.Took(reading.device, call, rc, t_ns)) return false;
  for (double& value : *values) value /= scale;
  const auto bad = [most](double value) { return !(value >= 0 && value <= most); };
  for (const double value : *values) {
    if (bad(value)) reading.group.Drop(reading.device, first_metric, std::to_string(value), t_ns);
  }
  std::erase_if(*values, bad);
  return !values->empty();
}

// The part of the time since the last reading that `count` readings stand for.
void PutCovered(const Reading& reading, size_t metric, const SampleBuffer& buffer, size_t count,
                int64_t last_ns) {
  if (last_ns == 0) return;
  const double elapsed_s = base::SecondsFromNs(reading.out.t_ns - last_ns);
  if (elapsed_s <= 0) return;
  const double seen_s = static_cast<double>(count) * buffer.spacing_s().value_or(0);
  reading.group.Put(reading.device, metric, std::min(1.0, seen_s / elapsed_s), reading.out);
}

constexpr std::array kPowerMetrics = {gpu::kPowerTraceMean, gpu::kPowerTraceMin,
                                      gpu::kPowerTraceMax, gpu::kPowerTraceP95,
                                      gpu::kPowerTraceCovered};
constexpr std::array<CallDef, 1> kPowerCalls = {{{"nvmlDeviceGetSamples(TOTAL_POWER)", 0, 5}}};
constexpr double kMostWatts = 20000;

struct PowerState {
  SampleBuffer buffer{kNvmlSamplesTotalPower};
  int64_t read_at_ns = 0;
};

void ReadPower(const Reading& reading, PowerState& state) {
  const int64_t t_ns = reading.out.t_ns;
  const int64_t least_ns = reading.group.period_ns() * 9 / 10;
  if (state.read_at_ns != 0 && t_ns - state.read_at_ns < least_ns) return;
  std::vector<double> watts;
  const bool any = ReadNew(reading, 0, 0, state.buffer, 1000, kMostWatts, &watts);
  if (any) {
    const WindowStats stats = Summarise(&watts);
    const std::array figures = {stats.mean, stats.min, stats.max, stats.p95};
    for (size_t i = 0; i < figures.size(); ++i) {
      reading.group.Put(reading.device, i, figures[i], reading.out);
    }
    PutCovered(reading, 4, state.buffer, watts.size(), state.read_at_ns);
  }
  state.read_at_ns = t_ns;
}

base::Result<std::unique_ptr<Source>> MakePower(const SourceContext& context) {
  return MakeStatefulSource<PowerState>(context, kPowerMetrics, kPowerCalls, Tier::kTick,
                                        &ReadPower, base::kNsPerSecond);
}

constexpr std::array kUtilizationMetrics = {
    gpu::kUtilizationTraceMean,    gpu::kUtilizationTraceMin,     gpu::kUtilizationTraceMax,
    gpu::kUtilizationTraceCovered, gpu::kMemoryActivityTraceMean, gpu::kMemoryActivityTraceMax};
constexpr std::array<CallDef, 2> kUtilizationCalls = {{
    {"nvmlDeviceGetSamples(GPU_UTILIZATION)", 0, 4},
    {"nvmlDeviceGetSamples(MEMORY_UTILIZATION)", 4, 2},
}};

struct UtilizationState {
  SampleBuffer gpu{kNvmlSamplesGpuUtil};
  SampleBuffer memory{kNvmlSamplesMemUtil};
  int64_t read_at_ns = 0;
};

void ReadUtilization(const Reading& reading, UtilizationState& state) {
  std::vector<double> ratios;
  if (ReadNew(reading, 0, 0, state.gpu, 100, 1, &ratios)) {
    const WindowStats stats = Summarise(&ratios);
    reading.group.Put(reading.device, 0, stats.mean, reading.out);
    reading.group.Put(reading.device, 1, stats.min, reading.out);
    reading.group.Put(reading.device, 2, stats.max, reading.out);
    PutCovered(reading, 3, state.gpu, ratios.size(), state.read_at_ns);
  }
  ratios.clear();
  if (ReadNew(reading, 1, 4, state.memory, 100, 1, &ratios)) {
    const WindowStats stats = Summarise(&ratios);
    reading.group.Put(reading.device, 4, stats.mean, reading.out);
    reading.group.Put(reading.device, 5, stats.max, reading.out);
  }
  state.read_at_ns = reading.out.t_ns;
}

base::Result<std::unique_ptr<Source>> MakeUtilization(const SourceContext& context) {
  return MakeStatefulSource<UtilizationState>(context, kUtilizationMetrics, kUtilizationCalls,
                                              Tier::kSlow, &ReadUtilization);
}

}  // namespace

const SourceDef kGpuPowerTrace{.name = "gpu.power_trace",
                               .summary = "mean, lowest and highest of the driver's 20 ms power",
                               .metrics = kPowerMetrics,
                               .tier = Tier::kTick,
                               .longest_ns = 30 * base::kNsPerSecond,
                               .Make = &MakePower};

const SourceDef kGpuUtilizationTrace{
    .name = "gpu.utilization_trace",
    .summary = "mean, lowest and highest of the driver's utilisation windows",
    .metrics = kUtilizationMetrics,
    .tier = Tier::kSlow,
    .at_epochs = false,
    .longest_ns = 120 * base::kNsPerSecond,
    .Make = &MakeUtilization};

}  // namespace epochmeter::collect::nvml
