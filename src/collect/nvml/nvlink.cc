// SPDX-License-Identifier: Apache-2.0
// NVLink: bytes (1.4 ms), errors, links and speed; slow tier. Fields of links are asked with the
// scope "all links": a scope of 0 would give link 0 alone.
#include <algorithm>
#include <array>

#include "collect/nvml/device_source.h"
#include "collect/nvml/nvml_sources.h"
#include "model/gpu_activity_metrics.h"
#include "model/gpu_link_metrics.h"

namespace epochmeter::collect::nvml {
namespace {

namespace gpu = model::gpu;

enum MetricIndex : size_t { kTransmit, kReceive, kLinks, kActive, kSpeed, kFirstError };
constexpr std::array kMetrics = {
    gpu::kNvlinkTransmit, gpu::kNvlinkReceive,  gpu::kNvlinkLinks,     gpu::kNvlinkActive,
    gpu::kNvlinkSpeed,    gpu::kNvlinkCrcFlit,  gpu::kNvlinkCrcData,   gpu::kNvlinkReplay,
    gpu::kNvlinkRecovery, gpu::kNvlinkReceive5, gpu::kNvlinkDiscards5, gpu::kNvlinkRecovered5,
    gpu::kNvlinkLost5};

enum Call : size_t { kKibTx, kKibRx, kBytesTx, kBytesRx, kCount, kState, kCommonSpeed, kOldErrors };
constexpr size_t kNewErrors = kOldErrors + 4;
constexpr std::array<CallDef, kNewErrors + 4> kCalls = {{
    {"NVML field 138 (NVLINK_THROUGHPUT_DATA_TX)", kTransmit, 1},
    {"NVML field 139 (NVLINK_THROUGHPUT_DATA_RX)", kReceive, 1},
    {"NVML field 202 (NVLINK_COUNT_XMIT_BYTES)", kTransmit, 1},
    {"NVML field 204 (NVLINK_COUNT_RCV_BYTES)", kReceive, 1},
    {"NVML field 91 (NVLINK_LINK_COUNT)", kLinks, 1},
    {"nvmlDeviceGetNvLinkState", kActive, 1},
    {"NVML field 90 (NVLINK_SPEED_MBPS_COMMON)", kSpeed, 1},
    {"NVML field 38 (NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL)", kFirstError, 1},
    {"NVML field 45 (NVLINK_CRC_DATA_ERROR_COUNT_TOTAL)", kFirstError + 1, 1},
    {"NVML field 52 (NVLINK_REPLAY_ERROR_COUNT_TOTAL)", kFirstError + 2, 1},
    {"NVML field 59 (NVLINK_RECOVERY_ERROR_COUNT_TOTAL)", kFirstError + 3, 1},
    {"NVML field 208 (NVLINK_COUNT_RCV_ERRORS)", kFirstError + 4, 1},
    {"NVML field 212 (NVLINK_COUNT_XMIT_DISCARDS)", kFirstError + 5, 1},
    {"NVML field 213 (LINK_RECOVERY_SUCCESSFUL_EVENTS)", kFirstError + 6, 1},
    {"NVML field 214 (LINK_RECOVERY_FAILED_EVENTS)", kFirstError + 7, 1},
}};

// Sent to sent, received to received.
constexpr std::array<FieldRow, 2> kKib = {{
    {kNvmlFieldNvlinkThroughputTx, kKibTx, kNvmlAllLinks},
    {kNvmlFieldNvlinkThroughputRx, kKibRx, kNvmlAllLinks},
}};
constexpr std::array<FieldRow, 2> kBytes = {{
    {kNvmlFieldNvlink5TxBytes, kBytesTx, kNvmlAllLinks},
    {kNvmlFieldNvlink5RxBytes, kBytesRx, kNvmlAllLinks},
}};
constexpr std::array<FieldRow, 2> kShape = {{
    {kNvmlFieldNvlinkLinkCount, kCount},
    {kNvmlFieldNvlinkSpeedCommon, kCommonSpeed},
}};
constexpr std::array<FieldRow, 4> kOldErrorFields = {{
    {kNvmlFieldNvlinkCrcFlitErrors, kOldErrors},
    {kNvmlFieldNvlinkCrcDataErrors, kOldErrors + 1},
    {kNvmlFieldNvlinkReplayErrors, kOldErrors + 2},
    {kNvmlFieldNvlinkRecoveryErrors, kOldErrors + 3},
}};
constexpr std::array<FieldRow, 4> kNewErrorFields = {{
    {kNvmlFieldNvlink5RxErrors, kNewErrors, kNvmlAllLinks},
    {kNvmlFieldNvlink5TxDiscards, kNewErrors + 1, kNvmlAllLinks},
    {kNvmlFieldNvlink5RecoverySucceeded, kNewErrors + 2, kNvmlAllLinks},
    {kNvmlFieldNvlink5RecoveryFailed, kNewErrors + 3, kNvmlAllLinks},
}};

constexpr double kMostBytes = 9e18;  // sentinels near 2^63 and 2^64 lie above
constexpr double kMostErrors = 4294967294.0;
constexpr double kMostLinks = 72;

enum class Kind : uint8_t { kNotKnown, kInKib, kInBytes, kNone };
struct State {
  Kind kind = Kind::kNotKnown;
  uint32_t links = 0;
};

// One reason for the whole, not one for each field: most GPUs have no NVLink.
Kind FindKind(const Reading& reading) {
  if (!reading.group.Due(reading.device, kKibTx, reading.out.t_ns)) return Kind::kNotKnown;
  const NvmlReturn rc = ProbeField(reading, kNvmlFieldNvlinkThroughputTx, kNvmlAllLinks);
  if (rc == kNvmlSuccess) return Kind::kInKib;
  if (ProbeField(reading, kNvmlFieldNvlink5TxBytes, kNvmlAllLinks) == kNvmlSuccess) {
    return Kind::kInBytes;
  }
  const bool lacks = rc == kNvmlNotSupported || rc == kNvmlInvalidArgument;
  if (!lacks) {
    reading.group.Took(reading.device, kKibTx, rc, reading.out.t_ns);
    return Kind::kNotKnown;
  }
  for (const size_t call : {size_t{kKibTx}, size_t{kKibRx}}) {
    reading.group.Unsupported(reading.device, call,
                              "NVML fields 138 and 202: Not Supported: this GPU has no NVLink, or "
                              "no other GPU is connected",
                              reading.out.t_ns);
  }
  return Kind::kNone;
}

void ReadActive(const Reading& reading, uint32_t links) {
  if (links == 0 || !reading.group.Due(reading.device, kState, reading.out.t_ns)) return;
  uint32_t active = 0;
  NvmlReturn rc = kNvmlFunctionNotFound;
  for (uint32_t link = 0; link < links; ++link) {
    uint32_t up = 0;
    if (reading.api.nvlink_state != nullptr) {
      rc = reading.api.nvlink_state(reading.device.handle, link, &up);
    }
    if (rc != kNvmlSuccess) break;
    active += up != 0 ? 1 : 0;
  }
  if (reading.group.Took(reading.device, kState, rc, reading.out.t_ns)) {
    reading.group.Put(reading.device, kActive, active, reading.out);
  }
}

void ReadShape(const Reading& reading, State& state) {
  constexpr double kBytesPerMb = 1e6;
  for (const FieldReading& field : ReadFields(reading, kShape)) {
    if (field.row == 0) {
      reading.PutInRange(kLinks, field.value, 0, kMostLinks);
      if (field.value >= 0 && field.value <= kMostLinks) {
        state.links = static_cast<uint32_t>(field.value);
      }
    } else {
      reading.PutInRange(kSpeed, field.value * kBytesPerMb, 0, 1e13);
    }
  }
  ReadActive(reading, state.links);
}

void Read(const Reading& reading, State& state) {
  if (state.kind == Kind::kNotKnown) state.kind = FindKind(reading);
  if (state.kind == Kind::kNotKnown || state.kind == Kind::kNone) return;
  const bool kib = state.kind == Kind::kInKib;
  for (const FieldReading& field : ReadFields(reading, kib ? kKib : kBytes)) {
    reading.PutInRange(kTransmit + field.row, field.value * (kib ? 1024 : 1), 0, kMostBytes);
  }
  ReadShape(reading, state);
  const bool newer = reading.device.architecture >= kNvmlArchBlackwell;
  for (const FieldReading& field : ReadFields(reading, newer ? kNewErrorFields : kOldErrorFields)) {
    reading.PutInRange(kFirstError + (newer ? 4 : 0) + field.row, field.value, 0, kMostErrors);
  }
}

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  return MakeStatefulSource<State>(context, kMetrics, kCalls, Tier::kSlow, &Read);
}

}  // namespace

const SourceDef kGpuNvlink{.name = "gpu.nvlink",
                           .summary = "NVLink bytes, errors, links and speed",
                           .metrics = kMetrics,
                           .tier = Tier::kSlow,
                           .at_epochs = false,
                           .longest_ns = 120 * base::kNsPerSecond,
                           .Make = &Make};

}  // namespace epochmeter::collect::nvml
