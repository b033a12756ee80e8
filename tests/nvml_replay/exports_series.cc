// SPDX-License-Identifier: Apache-2.0
// Exported calls over fields, sample buffers and GPM.
#include <algorithm>
#include <array>
#include <cmath>

#include "exports.h"

namespace nvml_replay {
namespace {

struct FieldRow {
  uint32_t id;
  const char* key;
  uint32_t type;
};

constexpr std::array<FieldRow, 16> kFields = {{
    {kNvmlFieldPerfPolicyPower, "perf_policy_power_ns", kNvmlValueUlonglong},
    {kNvmlFieldPerfPolicyThermal, "perf_policy_thermal_ns", kNvmlValueUlonglong},
    {kNvmlFieldPerfPolicyBoardLimit, "perf_policy_board_ns", kNvmlValueUlonglong},
    {kNvmlFieldPerfPolicyLowUtilization, "perf_policy_lowutil_ns", kNvmlValueUlonglong},
    {kNvmlFieldPerfPolicyReliability, "perf_policy_reliability_ns", kNvmlValueUlonglong},
    {kNvmlFieldMemoryTemp, "memory_temp_c", kNvmlValueUint},
    {kNvmlFieldTotalEnergy, "energy_mj", kNvmlValueUlonglong},
    {kNvmlFieldPcieReplayCounter, "pcie_replay", kNvmlValueUint},
    {kNvmlFieldNvlinkThroughputTx, "nvlink_tx_kib", kNvmlValueUlonglong},
    {kNvmlFieldNvlinkThroughputRx, "nvlink_rx_kib", kNvmlValueUlonglong},
    {kNvmlFieldPowerAverage, "power_average_mw", kNvmlValueUint},
    {kNvmlFieldPowerInstant, "power_instant_mw", kNvmlValueUint},
    {kNvmlFieldPowerDefaultLimit, "power_default_limit_mw", kNvmlValueUint},
    {kNvmlFieldPowerCurrentLimit, "power_limit_mw", kNvmlValueUint},
    {kNvmlFieldPcieTxBytes, "pcie_tx_bytes", kNvmlValueUlonglong},
    {kNvmlFieldPcieRxBytes, "pcie_rx_bytes", kNvmlValueUlonglong},
}};

// As drivers do: the value slot stays untouched unless the field succeeds.
void ReadField(const Call& call, NvmlFieldValue* field) {
  const std::string name = "field:" + std::to_string(field->field_id);
  const int64_t begin_us = WallMicros();
  call.player().Spend(name);
  field->nvml_return = kNvmlNotSupported;
  const auto fault = call.player().TakeFault(name, static_cast<int>(call.index()));
  const auto row = std::find_if(kFields.begin(), kFields.end(),
                                [&](const FieldRow& r) { return r.id == field->field_id; });
  if (fault) field->nvml_return = fault->return_code;
  if (fault || row == kFields.end()) return;
  const bool nvlink =
      row->id == kNvmlFieldNvlinkThroughputTx || row->id == kNvmlFieldNvlinkThroughputRx;
  const auto value = call.U64(row->key);
  if (!value || (nvlink && field->scope_id != UINT32_MAX)) return;
  field->value_type = row->type;
  field->value.u64 = row->type == kNvmlValueUint ? std::min<uint64_t>(*value, UINT32_MAX) : *value;
  field->nvml_return = kNvmlSuccess;
  field->timestamp_us = WallMicros();
  field->latency_us = field->timestamp_us - begin_us;
}

struct Buffer {
  const char* key;
  int64_t spacing_ns;
  uint32_t capacity;
};

const Buffer* FindBuffer(uint32_t type) {
  static constexpr std::array<Buffer, 3> kBuffers = {{
      {"power_instant_mw", 20000000, 119},
      {"util_gpu", 200000000, 71},
      {"util_mem", 200000000, 71},
  }};
  return type < kBuffers.size() ? &kBuffers[type] : nullptr;
}

struct GpmName {
  uint32_t id;
  const char* key;
  const char* name;
};

constexpr std::array<GpmName, 14> kGpmNames = {{
    {kNvmlGpmGraphicsUtil, "gpm.graphics_util", "GRAPHICS_UTIL"},
    {kNvmlGpmSmUtil, "gpm.sm_util", "SM_UTIL"},
    {kNvmlGpmSmOccupancy, "gpm.sm_occupancy", "SM_OCCUPANCY"},
    {kNvmlGpmIntegerUtil, "gpm.integer_util", "INTEGER_UTIL"},
    {kNvmlGpmAnyTensorUtil, "gpm.any_tensor_util", "ANY_TENSOR_UTIL"},
    {kNvmlGpmHmmaTensorUtil, "gpm.hmma_util", "HMMA_TENSOR_UTIL"},
    {kNvmlGpmDramBwUtil, "gpm.dram_bw_util", "DRAM_BW_UTIL"},
    {kNvmlGpmFp64Util, "gpm.fp64_util", "FP64_UTIL"},
    {kNvmlGpmFp32Util, "gpm.fp32_util", "FP32_UTIL"},
    {kNvmlGpmFp16Util, "gpm.fp16_util", "FP16_UTIL"},
    {kNvmlGpmPcieTx, "gpm.pcie_tx_mib_s", "PCIE_TX_PER_SEC"},
    {kNvmlGpmPcieRx, "gpm.pcie_rx_mib_s", "PCIE_RX_PER_SEC"},
    {kNvmlGpmNvlinkRx, "gpm.nvlink_rx_mib_s", "NVLINK_TOTAL_RX_PER_SEC"},
    {kNvmlGpmNvlinkTx, "gpm.nvlink_tx_mib_s", "NVLINK_TOTAL_TX_PER_SEC"},
}};

struct GpmSample {
  bool filled = false;
  size_t index = 0;
  int64_t play_ns = 0;
};

GpmSample* Unwrap(NvmlGpmSample sample) { return reinterpret_cast<GpmSample*>(sample); }

void ReadGpmMetric(const Player& player, const GpmSample& from, const GpmSample& to,
                   NvmlGpmMetric* metric) {
  metric->nvml_return = kNvmlNotSupported;
  for (const GpmName& row : kGpmNames) {
    if (row.id != metric->metric_id) continue;
    const auto value = player.GpmMean(from.index, row.key, from.play_ns, to.play_ns);
    if (!value) return;
    metric->nvml_return = kNvmlSuccess;
    metric->value = *value;
    metric->short_name = row.name;
    metric->long_name = row.name;
    metric->unit = row.id < kNvmlGpmPcieTx ? "%" : "MiB/s";
  }
}

}  // namespace
}  // namespace nvml_replay

using nvml_replay::Call;
using nvml_replay::Player;

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetFieldValues(NvmlDevice device, int32_t count,
                                                      NvmlFieldValue* fields) {
  const Call call("nvmlDeviceGetFieldValues", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (count <= 0 || fields == nullptr) return kNvmlInvalidArgument;
  for (int32_t i = 0; i < count; ++i) nvml_replay::ReadField(call, &fields[i]);
  return kNvmlSuccess;
}

// A null buffer asks for the capacity; otherwise the points newer than last_seen_us, oldest first.
EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetSamples(NvmlDevice device, uint32_t type,
                                                  uint64_t last_seen_us, uint32_t* value_type,
                                                  uint32_t* count, NvmlSample* samples) {
  const Call call("nvmlDeviceGetSamples", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (count == nullptr || value_type == nullptr) return kNvmlInvalidArgument;
  const auto* buffer = nvml_replay::FindBuffer(type);
  if (buffer == nullptr) return kNvmlNotFound;
  const Player& player = call.player();
  if (!player.Value(call.index(), buffer->key)) return kNvmlNotSupported;
  *value_type = kNvmlValueUint;
  const uint32_t room = *count;
  *count = buffer->capacity;
  if (samples == nullptr) return kNvmlSuccess;
  const int64_t play_ns = player.PlayNs();
  const int64_t newest = play_ns / buffer->spacing_ns;
  uint32_t written = 0;
  for (int64_t k = newest - buffer->capacity + 1; k <= newest; ++k) {
    const int64_t at_ns = k * buffer->spacing_ns;
    const double age_us = static_cast<double>(play_ns - at_ns) / player.speed() / 1e3;
    const int64_t stamp_us = nvml_replay::WallMicros() - static_cast<int64_t>(age_us);
    if (static_cast<uint64_t>(stamp_us) <= last_seen_us) continue;
    if (written == room) return kNvmlInsufficientSize;
    samples[written] = {};
    samples[written].timestamp_us = static_cast<uint64_t>(stamp_us);
    const double value = player.ValueAt(call.index(), buffer->key, at_ns).value_or(0);
    samples[written].value.u32 = static_cast<uint32_t>(nvml_replay::ToU64(value));
    ++written;
  }
  *count = written;
  return written == 0 ? kNvmlNotFound : kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlGpmQueryDeviceSupport(NvmlDevice device, NvmlGpmSupport* out) {
  const Call call("nvmlGpmQueryDeviceSupport", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (out == nullptr) return kNvmlInvalidArgument;
  if (out->version != kNvmlGpmVersion) return kNvmlArgumentVersionMismatch;
  const auto& tracks = call.player().model(call.index()).tracks;
  const auto first = tracks.lower_bound("gpm.");
  out->is_supported = first != tracks.end() && first->first.rfind("gpm.", 0) == 0 ? 1U : 0U;
  return kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlGpmSampleAlloc(NvmlGpmSample* sample) {
  const Call call("nvmlGpmSampleAlloc");
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (sample == nullptr) return kNvmlInvalidArgument;
  *sample = reinterpret_cast<NvmlGpmSample>(new nvml_replay::GpmSample);
  return kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlGpmSampleFree(NvmlGpmSample sample) {
  if (sample == nullptr) return kNvmlInvalidArgument;
  delete nvml_replay::Unwrap(sample);
  return kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlGpmSampleGet(NvmlDevice device, NvmlGpmSample sample) {
  const Call call("nvmlGpmSampleGet", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (sample == nullptr) return kNvmlInvalidArgument;
  *nvml_replay::Unwrap(sample) = {true, call.index(), call.player().PlayNs()};
  return kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlGpmMetricsGet(NvmlGpmMetricsGet* request) {
  const Call call("nvmlGpmMetricsGet");
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (request == nullptr || request->num_metrics > kNvmlGpmMetricMax) return kNvmlInvalidArgument;
  if (request->version != kNvmlGpmVersion) return kNvmlArgumentVersionMismatch;
  const auto* from = nvml_replay::Unwrap(request->sample1);
  const auto* to = nvml_replay::Unwrap(request->sample2);
  if (from == nullptr || to == nullptr || !from->filled || !to->filled) return kNvmlInvalidArgument;
  if (from->index != to->index || from->play_ns >= to->play_ns) return kNvmlInvalidArgument;
  for (uint32_t i = 0; i < request->num_metrics; ++i) {
    nvml_replay::ReadGpmMetric(call.player(), *from, *to, &request->metrics[i]);
  }
  return kNvmlSuccess;
}
