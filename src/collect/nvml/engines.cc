// SPDX-License-Identifier: Apache-2.0
// Busy shares of the fixed-function engines: about 1 us each, over a window that the driver chooses
// (its length is said in the attribute engine_window_us). They matter little to trainings that do
// not decode on the GPU: slow tier.
#include <array>

#include "collect/nvml/device_source.h"
#include "collect/nvml/nvml_sources.h"
#include "model/gpu_power_metrics.h"

namespace epochmeter::collect::nvml {
namespace {

constexpr std::array kMetrics = {model::gpu::kEncoder, model::gpu::kDecoder, model::gpu::kJpeg,
                                 model::gpu::kOpticalFlow};
constexpr std::array<CallDef, 4> kCalls = {{
    {"nvmlDeviceGetEncoderUtilization", 0, 1},
    {"nvmlDeviceGetDecoderUtilization", 1, 1},
    {"nvmlDeviceGetJpgUtilization", 2, 1},
    {"nvmlDeviceGetOfaUtilization", 3, 1},
}};

void Read(const Reading& reading) {
  const Api& api = reading.api;
  const std::array calls = {api.encoder, api.decoder, api.jpg, api.ofa};
  for (size_t i = 0; i < calls.size(); ++i) {
    uint32_t percent = 0;
    uint32_t period_us = 0;
    if (!reading.Try(i, calls[i], &percent, &period_us)) continue;
    reading.PutInRange(i, percent / 100.0, 0, 1);
    if (i == 0 && period_us > 0) {
      reading.session.SetAttribute(reading.device, "engine_window_us", std::to_string(period_us));
    }
  }
}

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  return MakeDeviceSource(context, kMetrics, kCalls, Tier::kSlow, &Read);
}

}  // namespace

const SourceDef kGpuEngines{.name = "gpu.engines",
                            .summary = "busy shares of encoder, decoder, JPEG and optical flow",
                            .metrics = kMetrics,
                            .tier = Tier::kSlow,
                            .Make = &Make};

}  // namespace epochmeter::collect::nvml
