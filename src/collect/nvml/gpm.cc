// SPDX-License-Identifier: Apache-2.0
// GPM: how much of the GPU's parts was busy between two samples; Hopper and newer. 38 us for a
// sample and 1.9 ms for the metrics of one device. The driver's counters give NaN under 100 ms, so
// the window is 200 ms at least. The sample objects never leave this source and its thread: two
// users of one object can panic the kernel.
#include <array>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "collect/nvml/device_source.h"
#include "collect/nvml/nvml_sources.h"
#include "model/gpu_activity_metrics.h"

namespace epochmeter::collect::nvml {
namespace {

namespace gpu = model::gpu;

constexpr std::array kMetrics = {
    gpu::kEngineActive,      gpu::kSmActive,          gpu::kSmOccupancy,      gpu::kIntegerActive,
    gpu::kTensorActive,      gpu::kTensorHalfActive,  gpu::kDramActive,       gpu::kFp64Active,
    gpu::kFp32Active,        gpu::kFp16Active,        gpu::kPcieTransmitRate, gpu::kPcieReceiveRate,
    gpu::kNvlinkReceiveRate, gpu::kNvlinkTransmitRate};
constexpr size_t kCount = kMetrics.size();

constexpr std::array<uint32_t, kCount> kIds = {
    kNvmlGpmGraphicsUtil,  kNvmlGpmSmUtil,         kNvmlGpmSmOccupancy, kNvmlGpmIntegerUtil,
    kNvmlGpmAnyTensorUtil, kNvmlGpmHmmaTensorUtil, kNvmlGpmDramBwUtil,  kNvmlGpmFp64Util,
    kNvmlGpmFp32Util,      kNvmlGpmFp16Util,       kNvmlGpmPcieTx,      kNvmlGpmPcieRx,
    kNvmlGpmNvlinkRx,      kNvmlGpmNvlinkTx};

// Entry 0 stands for GPM as a whole, entry 1 + i for metric i alone.
constexpr size_t kWhole = 0;
constexpr auto kCalls = [] {
  std::array<CallDef, kCount + 1> calls{};
  calls[kWhole] = {"NVML GPM", 0, static_cast<uint8_t>(kCount)};
  for (size_t i = 0; i < kCount; ++i) {
    calls[1 + i] = {kMetrics[i].source.data(), static_cast<uint8_t>(i), 1};
  }
  return calls;
}();

constexpr int64_t kLeastPeriodNs = 200 * base::kNsPerMs;
// A late tick may leave less time to the next; under 100 ms the driver gives NaN.
constexpr int64_t kLeastWindowNs = 150 * base::kNsPerMs;

// The two sample objects of one device; `filled` is the one that begins the next window.
struct Window {
  uint32_t generation = 0;
  bool supported = false;
  std::array<NvmlGpmSample, 2> samples{};
  int filled = -1;
  int64_t t_ns = 0;
  int64_t read_at_ns = 0;
};

class GpmSource final : public Source {
 public:
  explicit GpmSource(const SourceContext& context)
      : session_(*context.nvml),
        monotonic_ns_(context.env.monotonic_ns),
        group_(context, {.metrics = kMetrics,
                         .calls = kCalls,
                         .period_ns = std::max(context.tick_ns, kLeastPeriodNs)}),
        request_(std::make_unique<NvmlGpmMetricsGet>()) {}

  ~GpmSource() override {
    for (Window& window : windows_) Free(window);
  }

  base::Result<> Sample(model::Samples& out) override {
    session_.Maintain(out.t_ns);
    windows_.resize(session_.devices().size());
    for (size_t i = 0; i < windows_.size(); ++i) {
      const Reading reading{session_.api(), session_, group_, session_.devices()[i], out};
      SampleDevice(reading, windows_[i]);
    }
    return {};
  }

 private:
  void SampleDevice(const Reading& reading, Window& window) {
    const int64_t t_ns = reading.out.t_ns;
    if (!reading.group.Due(reading.device, kWhole, t_ns)) {
      window.filled = -1;
      return;
    }
    if (window.generation != reading.device.generation && !Prepare(reading, window)) return;
    const int64_t now_ns = monotonic_ns_();
    const bool too_soon =
        t_ns - window.t_ns < kLeastPeriodNs || now_ns - window.read_at_ns < kLeastWindowNs;
    if (window.filled >= 0 && too_soon) return;
    const int next = window.filled == 0 ? 1 : 0;
    if (!reading.Try(kWhole, reading.api.gpm_sample_get,
                     window.samples[static_cast<size_t>(next)])) {
      window.filled = -1;
      return;
    }
    if (window.filled >= 0) ReadMetrics(reading, window, next);
    window.filled = next;
    window.t_ns = t_ns;
    window.read_at_ns = now_ns;
  }

  // Asks for support and makes the sample objects anew: those of an older handle are void.
  bool Prepare(const Reading& reading, Window& window) {
    Free(window);
    const Api& api = reading.api;
    NvmlGpmSupport support{.version = kNvmlGpmVersion, .is_supported = 0};
    if (!reading.Try(kWhole, api.gpm_support, &support)) return false;
    if (support.is_supported == 0) {
      reading.group.Unsupported(reading.device, kWhole,
                                "this GPU has no GPM counters; they begin with Hopper",
                                reading.out.t_ns);
      return false;
    }
    for (NvmlGpmSample& sample : window.samples) {
      const NvmlReturn rc = api.gpm_sample_alloc != nullptr ? api.gpm_sample_alloc(&sample)
                                                            : NvmlReturn{kNvmlFunctionNotFound};
      if (!reading.group.Took(reading.device, kWhole, rc, reading.out.t_ns)) return false;
    }
    window.generation = reading.device.generation;
    return true;
  }

  void ReadMetrics(const Reading& reading, Window& window, int next) {
    std::vector<size_t> asked;
    *request_ = {};
    request_->version = kNvmlGpmVersion;
    request_->sample1 = window.samples[static_cast<size_t>(window.filled)];
    request_->sample2 = window.samples[static_cast<size_t>(next)];
    for (size_t i = 0; i < kCount; ++i) {
      if (!reading.group.Due(reading.device, 1 + i, reading.out.t_ns)) continue;
      request_->metrics[asked.size()].metric_id = kIds[i];
      asked.push_back(i);
    }
    request_->num_metrics = static_cast<uint32_t>(asked.size());
    if (asked.empty()) return;
    const auto call = reading.api.gpm_metrics_get;
    const NvmlReturn rc =
        call != nullptr ? call(request_.get()) : NvmlReturn{kNvmlFunctionNotFound};
    if (!reading.group.Took(reading.device, kWhole, rc, reading.out.t_ns)) return;
    for (size_t k = 0; k < asked.size(); ++k) {
      const NvmlGpmMetric& metric = request_->metrics[k];
      const size_t i = asked[k];
      if (!reading.group.Took(reading.device, 1 + i, metric.nvml_return, reading.out.t_ns))
        continue;
      PutMetric(reading, i, metric.value);
    }
  }

  static void PutMetric(const Reading& reading, size_t metric, double value) {
    constexpr double kBytesPerMib = 1048576.0;
    constexpr double kMostBytesPerSecond = 1e14;
    if (kIds[metric] < kNvmlGpmPcieTx) {
      // Rounding may lift a full pipe slightly over 1.
      reading.PutInRange(metric, value / 100, 0, 1.05);
    } else {
      reading.PutInRange(metric, value * kBytesPerMib, 0, kMostBytesPerSecond);
    }
  }

  void Free(Window& window) {
    for (NvmlGpmSample& sample : window.samples) {
      if (sample != nullptr) session_.api().gpm_sample_free(sample);
      sample = nullptr;
    }
    window.filled = -1;
    window.generation = 0;
  }

  Session& session_;
  int64_t (*monotonic_ns_)();
  SeriesGroup group_;
  std::unique_ptr<NvmlGpmMetricsGet> request_;
  std::vector<Window> windows_;  // by the device's place in the session
};

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  EPM_CHECK(context.nvml != nullptr) << "NVML sources need a session";
  EPM_TRY(context.nvml->Open(context));
  return std::unique_ptr<Source>(std::make_unique<GpmSource>(context));
}

}  // namespace

const SourceDef kGpuActivity{.name = "gpu.activity",
                             .summary = "busy shares of SMs, pipes, memory and links (Hopper+)",
                             .metrics = kMetrics,
                             .tier = Tier::kTick,
                             .Make = &Make};

}  // namespace epochmeter::collect::nvml
