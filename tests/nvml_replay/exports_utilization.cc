// SPDX-License-Identifier: Apache-2.0
// Exported calls: utilisation, and the buffers of past samples.
#include <array>

#include "call.h"
#include "stamps.h"

namespace nvml_replay {
namespace {

NvmlReturn Engine(std::string_view function, NvmlDevice device, const char* key, uint32_t* percent,
                  uint32_t* period_us) {
  const Call call(function, device, Takes::kGpuWithoutMig);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (percent == nullptr || period_us == nullptr) return kNvmlInvalidArgument;
  const NvmlReturn rc = call.Put(key, percent);
  if (rc == kNvmlSuccess) {
    *period_us = static_cast<uint32_t>(call.U64Or("sampling_period_us", 167000));
  }
  return rc;
}

struct Buffer {
  uint32_t type;
  const char* key;
  int64_t spacing_ns;
  uint32_t capacity;
};

// Spacing and size as on an H200, whose clock buffers answer NOT_FOUND.
constexpr int64_t kPowerNs = 20000000;
constexpr int64_t kUtilNs = 200000000;
constexpr std::array<Buffer, 8> kBuffers = {{
    {kNvmlSamplesTotalPower, "power_instant_mw", kPowerNs, 119},
    {kNvmlSamplesGpuUtil, "util_gpu", kUtilNs, 71},
    {kNvmlSamplesMemUtil, "util_mem", kUtilNs, 71},
    {kNvmlSamplesEncoderUtil, "encoder_util", kUtilNs, 71},
    {kNvmlSamplesDecoderUtil, "decoder_util", kUtilNs, 71},
    {kNvmlSamplesModulePower, "power_instant_mw@1", kPowerNs, 119},
    {kNvmlSamplesJpgUtil, "jpg_util", kUtilNs, 71},
    {kNvmlSamplesOfaUtil, "ofa_util", kUtilNs, 71},
}};

const Buffer* FindBuffer(uint32_t type) {
  for (const Buffer& buffer : kBuffers) {
    if (buffer.type == type) return &buffer;
  }
  return nullptr;
}

// The points newer than last_seen_us, oldest first. Points that the device had no value for are
// left out, as in a gap of the driver's own sampling.
NvmlReturn FillSamples(const Call& call, const Buffer& buffer, uint64_t last_seen_us, uint32_t room,
                       uint32_t* count, NvmlSample* samples) {
  const Player& player = call.player();
  const int64_t newest = player.PlayNs() / buffer.spacing_ns;
  uint32_t written = 0;
  for (int64_t k = newest - buffer.capacity + 1; k <= newest; ++k) {
    const int64_t at_ns = k * buffer.spacing_ns;
    const int64_t stamp_us = StampOf(player, at_ns);
    const Reading reading = player.ReadAt(call.unit(), buffer.key, at_ns);
    if (stamp_us <= 0 || static_cast<uint64_t>(stamp_us) <= last_seen_us) continue;
    if (reading.code != 0) continue;
    if (written == room) return kNvmlInsufficientSize;
    samples[written] = {};
    samples[written].timestamp_us = static_cast<uint64_t>(stamp_us);
    samples[written].value.u32 = static_cast<uint32_t>(ToU64(reading.value));
    ++written;
  }
  *count = written;
  return written == 0 ? kNvmlNotFound : kNvmlSuccess;
}

}  // namespace
}  // namespace nvml_replay

using nvml_replay::Call;
using nvml_replay::Engine;
using nvml_replay::Takes;

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetUtilizationRates(NvmlDevice device,
                                                           NvmlUtilization* out) {
  const Call call("nvmlDeviceGetUtilizationRates", device, Takes::kGpuWithoutMig);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (out == nullptr) return kNvmlInvalidArgument;
  const NvmlReturn rc = call.Put("util_gpu", &out->gpu);
  return rc != kNvmlSuccess ? rc : call.Put("util_mem", &out->memory);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetEncoderUtilization(NvmlDevice device, uint32_t* percent,
                                                             uint32_t* period_us) {
  return Engine("nvmlDeviceGetEncoderUtilization", device, "encoder_util", percent, period_us);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetDecoderUtilization(NvmlDevice device, uint32_t* percent,
                                                             uint32_t* period_us) {
  return Engine("nvmlDeviceGetDecoderUtilization", device, "decoder_util", percent, period_us);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetJpgUtilization(NvmlDevice device, uint32_t* percent,
                                                         uint32_t* period_us) {
  return Engine("nvmlDeviceGetJpgUtilization", device, "jpg_util", percent, period_us);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetOfaUtilization(NvmlDevice device, uint32_t* percent,
                                                         uint32_t* period_us) {
  return Engine("nvmlDeviceGetOfaUtilization", device, "ofa_util", percent, period_us);
}

// A null buffer asks for the capacity.
EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetSamples(NvmlDevice device, uint32_t type,
                                                  uint64_t last_seen_us, uint32_t* value_type,
                                                  uint32_t* count, NvmlSample* samples) {
  const bool power = type == kNvmlSamplesTotalPower || type == kNvmlSamplesModulePower;
  const Call call("nvmlDeviceGetSamples", device, power ? Takes::kGpu : Takes::kGpuWithoutMig);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (count == nullptr || value_type == nullptr) return kNvmlInvalidArgument;
  const NvmlReturn rc =
      call.player().Enter("samples:" + std::to_string(type), static_cast<int>(call.unit().device));
  if (rc != kNvmlSuccess) return rc;
  const auto* buffer = nvml_replay::FindBuffer(type);
  if (buffer == nullptr) return kNvmlNotFound;
  const nvml_replay::Reading now = call.Read(buffer->key);
  if (now.code != 0) return now.code;
  *value_type = kNvmlValueUint;
  const uint32_t room = *count;
  *count = buffer->capacity;
  if (samples == nullptr) return kNvmlSuccess;
  return nvml_replay::FillSamples(call, *buffer, last_seen_us, room, count, samples);
}
