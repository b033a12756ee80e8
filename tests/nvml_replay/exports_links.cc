// SPDX-License-Identifier: Apache-2.0
// Exported calls: PCIe and NVLink.
#include "call.h"

namespace nvml_replay {
namespace {

// The value of one link: its own key, else the one for all links when the device has so many.
NvmlReturn LinkValue(const Call& call, std::string_view key, uint32_t link, uint32_t* out) {
  const std::string own = Part(key, link);
  if (call.player().HasKey(call.unit(), own)) return call.Put(own, out);
  const uint64_t links = call.U64Or("nvlink_links", 0);
  if (links == 0) return kNvmlNotSupported;
  return link >= links ? kNvmlInvalidArgument : call.Put(key, out);
}

}  // namespace
}  // namespace nvml_replay

using nvml_replay::Call;
using nvml_replay::Reading;

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetPcieThroughput(NvmlDevice device, uint32_t counter,
                                                         uint32_t* kib_per_s) {
  const Call call("nvmlDeviceGetPcieThroughput", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (kib_per_s == nullptr) return kNvmlInvalidArgument;
  const Reading mib = call.Read(counter == kNvmlPcieTx ? "gpm.pcie_tx_mib_s" : "gpm.pcie_rx_mib_s");
  if (mib.code != 0) return mib.code;
  *kib_per_s = static_cast<uint32_t>(nvml_replay::ToU64(mib.value * 1024));
  return kNvmlSuccess;
}

EPM_REPLAY_U32(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_gen")
EPM_REPLAY_U32(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width")
EPM_REPLAY_U32(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_gen_max")
EPM_REPLAY_U32(nvmlDeviceGetGpuMaxPcieLinkGeneration, "pcie_gpu_gen_max")
EPM_REPLAY_U32(nvmlDeviceGetMaxPcieLinkWidth, "pcie_width_max")
EPM_REPLAY_U32(nvmlDeviceGetPcieLinkMaxSpeed, "pcie_max_speed_mbps")
EPM_REPLAY_U32(nvmlDeviceGetPcieReplayCounter, "pcie_replay")

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetNvLinkState(NvmlDevice device, uint32_t link,
                                                      uint32_t* active) {
  const Call call("nvmlDeviceGetNvLinkState", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  return nvml_replay::LinkValue(call, "nvlink_state", link, active);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetNvLinkVersion(NvmlDevice device, uint32_t link,
                                                        uint32_t* version) {
  const Call call("nvmlDeviceGetNvLinkVersion", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  return nvml_replay::LinkValue(call, "nvlink_version", link, version);
}

// Counters 0 replay, 1 recovery, 2 CRC flit; gone with NVLink 5.
EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetNvLinkErrorCounter(NvmlDevice device, uint32_t link,
                                                             uint32_t counter, uint64_t* count) {
  const Call call("nvmlDeviceGetNvLinkErrorCounter", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (count == nullptr || counter > 2) return kNvmlInvalidArgument;
  if (call.U64Or("nvlink_version", 0) >= 5) return kNvmlNotSupported;
  static constexpr const char* kCounters[] = {"nvlink_error_replay", "nvlink_error_recovery",
                                              "nvlink_error_crc"};
  uint32_t value = 0;
  const NvmlReturn rc = nvml_replay::LinkValue(call, kCounters[counter], link, &value);
  if (rc == kNvmlSuccess) *count = value;
  return rc;
}
