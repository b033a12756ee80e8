// SPDX-License-Identifier: Apache-2.0
// GPM of one device or MIG instance: two sample objects and what lies between them. They never
// leave their reader and its thread: two users of one object can panic the kernel.
#pragma once

#include <array>
#include <optional>

#include "collect/nvml/device_source.h"
#include "model/gpu_activity_metrics.h"

namespace epochmeter::collect::nvml {

inline constexpr std::array kGpmMetrics = {
    model::gpu::kEngineActive,      model::gpu::kSmActive,          model::gpu::kSmOccupancy,
    model::gpu::kIntegerActive,     model::gpu::kTensorActive,      model::gpu::kTensorHalfActive,
    model::gpu::kDramActive,        model::gpu::kFp64Active,        model::gpu::kFp32Active,
    model::gpu::kFp16Active,        model::gpu::kPcieTransmitRate,  model::gpu::kPcieReceiveRate,
    model::gpu::kNvlinkReceiveRate, model::gpu::kNvlinkTransmitRate};
inline constexpr size_t kGpmCount = kGpmMetrics.size();
enum GpmMetricIndex : size_t { kGpmEngineActive = 0, kGpmSmActive = 1 };

// The least distance of two samples; under 100 ms the driver gives NaN.
inline constexpr int64_t kGpmLeastPeriodNs = 200 * base::kNsPerMs;

// Calls [first_call, first_call + 1 + kGpmCount) of a group: the first stands for GPM as a whole,
// the others for one metric each; metrics [first_metric, first_metric + kGpmCount).
constexpr void FillGpmCalls(CallDef* calls, size_t first_metric) {
  calls[0] = {"NVML GPM", static_cast<uint8_t>(first_metric), static_cast<uint8_t>(kGpmCount)};
  for (size_t i = 0; i < kGpmCount; ++i) {
    calls[1 + i] = {kGpmMetrics[i].source.data(), static_cast<uint8_t>(first_metric + i), 1};
  }
}

// Where a reader takes its samples from: the device, or a GPU instance of its parent.
struct GpmTarget {
  NvmlDevice parent = nullptr;  // null: reading.device itself
  uint32_t gpu_instance = kNvmlNoInstance;
};

class GpmReader {
 public:
  GpmReader(int64_t (*monotonic_ns)(), size_t first_call, size_t first_metric)
      : monotonic_ns_(monotonic_ns), first_call_(first_call), first_metric_(first_metric) {}

  // Takes a sample if the time has come, and puts the means since the one before. True when it put.
  bool Sample(const Reading& reading, const GpmTarget& target, NvmlGpmMetricsGet& request);
  // The value that Sample put last for a metric; nothing when it put none.
  std::optional<double> Last(size_t metric) const { return last_[metric]; }
  // Frees the sample objects; a reader that isn't freed leaks them.
  void Free(const Api& api);

 private:
  bool Prepare(const Reading& reading, const GpmTarget& target);
  NvmlReturn Take(const Reading& reading, const GpmTarget& target, NvmlGpmSample sample) const;
  bool ReadMetrics(const Reading& reading, int next, NvmlGpmMetricsGet& request);
  void PutMetric(const Reading& reading, size_t metric, double value);

  int64_t (*monotonic_ns_)();
  size_t first_call_;
  size_t first_metric_;
  uint32_t generation_ = 0;
  std::array<NvmlGpmSample, 2> samples_{};
  int filled_ = -1;  // the sample that begins the next window
  int64_t t_ns_ = 0;
  int64_t read_at_ns_ = 0;
  std::array<std::optional<double>, kGpmCount> last_{};
};

}  // namespace epochmeter::collect::nvml
