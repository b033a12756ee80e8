// SPDX-License-Identifier: Apache-2.0
// Exported calls: utilisation by process, with the habits of real drivers where the script asks
// for them.
#include <algorithm>

#include "call.h"
#include "stamps.h"

namespace nvml_replay {
namespace {

uint32_t Percent(const UtilizationRow& row, std::string_view key, int64_t now_ns) {
  const auto it = row.percent.find(key);
  if (it == row.percent.end()) return 0;
  const Reading reading = it->second.At(now_ns);
  return static_cast<uint32_t>(std::min<uint64_t>(ToU64(reading.value), UINT32_MAX));
}

// The rows newer than last_seen_us. A process that did nothing has none.
std::vector<NvmlProcessUtilizationInfoV1> Rows(const Call& call, uint64_t last_seen_us) {
  const UtilizationModel& model = call.model().utilization;
  const Player& player = call.player();
  const int64_t now_ns = player.PlayNs();
  const int64_t newest_ns = now_ns - (now_ns % model.period_ns + model.period_ns) % model.period_ns;
  std::vector<NvmlProcessUtilizationInfoV1> out(model.zero_rows, NvmlProcessUtilizationInfoV1{});
  for (const UtilizationRow& row : model.rows) {
    if (!row.alive.Has(now_ns)) continue;
    NvmlProcessUtilizationInfoV1 entry{};
    const int64_t stamp_us = StampOf(player, row.stamp_ns.value_or(newest_ns));
    entry.timestamp_us = static_cast<uint64_t>(std::max<int64_t>(stamp_us, 0));
    entry.pid = row.pid;
    entry.sm_util = Percent(row, "sm", now_ns);
    entry.mem_util = Percent(row, "mem", now_ns);
    entry.enc_util = Percent(row, "enc", now_ns);
    entry.dec_util = Percent(row, "dec", now_ns);
    entry.jpg_util = Percent(row, "jpg", now_ns);
    entry.ofa_util = Percent(row, "ofa", now_ns);
    const bool busy = (entry.sm_util | entry.mem_util | entry.enc_util | entry.dec_util |
                       entry.jpg_util | entry.ofa_util) != 0;
    const bool newer = model.ignores_last_seen || entry.timestamp_us > last_seen_us;
    if (busy && newer) out.push_back(entry);
  }
  return out;
}

// What both calls do before they write: the rows, or the code that stands in their place. A buffer
// that is small for the driver's own needs gets 7, however few the rows are.
NvmlReturn Prepare(const Call& call, uint64_t last_seen_us, bool no_buffer, uint32_t* count,
                   std::vector<NvmlProcessUtilizationInfoV1>* rows) {
  const UtilizationModel& model = call.model().utilization;
  if (count == nullptr) return kNvmlInvalidArgument;
  if (!model.supported) return kNvmlNotSupported;
  *rows = Rows(call, last_seen_us);
  if (rows->empty()) {
    *count = 0;
    return kNvmlNotFound;
  }
  const auto needed = std::max(model.capacity, static_cast<uint32_t>(rows->size()));
  const uint32_t room = *count;
  *count = no_buffer || room < needed ? needed : static_cast<uint32_t>(rows->size());
  return no_buffer || room < needed ? kNvmlInsufficientSize : kNvmlSuccess;
}

}  // namespace
}  // namespace nvml_replay

using nvml_replay::Call;
using nvml_replay::Takes;

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetProcessUtilization(NvmlDevice device,
                                                             NvmlProcessUtilizationSample* out,
                                                             uint32_t* count,
                                                             uint64_t last_seen_us) {
  const Call call("nvmlDeviceGetProcessUtilization", device, Takes::kGpuWithoutMig);
  if (call.rc() != kNvmlSuccess) return call.rc();
  std::vector<NvmlProcessUtilizationInfoV1> rows;
  const NvmlReturn rc = nvml_replay::Prepare(call, last_seen_us, out == nullptr, count, &rows);
  if (rc != kNvmlSuccess) return rc;
  for (const NvmlProcessUtilizationInfoV1& row : rows) {
    *out++ = {row.pid, row.timestamp_us, row.sm_util, row.mem_util, row.enc_util, row.dec_util};
  }
  return kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn
nvmlDeviceGetProcessesUtilizationInfo(NvmlDevice device, NvmlProcessesUtilizationInfoV1* info) {
  const Call call("nvmlDeviceGetProcessesUtilizationInfo", device, Takes::kGpuWithoutMig);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (info == nullptr) return kNvmlInvalidArgument;
  if (info->version != static_cast<uint32_t>(kNvmlProcessesUtilizationInfoV1Version)) {
    return kNvmlArgumentVersionMismatch;
  }
  std::vector<NvmlProcessUtilizationInfoV1> rows;
  const NvmlReturn rc =
      nvml_replay::Prepare(call, info->last_seen_us, info->entries == nullptr, &info->count, &rows);
  if (rc == kNvmlSuccess) std::copy(rows.begin(), rows.end(), info->entries);
  return rc;
}
