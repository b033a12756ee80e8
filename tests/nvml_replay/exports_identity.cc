// SPDX-License-Identifier: Apache-2.0
// Exported calls: what a GPU is.
#include <cstdio>
#include <cstring>

#include "call.h"

namespace nvml_replay {
namespace {

NvmlReturn PciInfo(std::string_view function, NvmlDevice device, NvmlPciInfo* out) {
  const Call call(function, device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (out == nullptr) return kNvmlInvalidArgument;
  const std::string& bus_id = call.model().bus_id;
  *out = NvmlPciInfo{};
  std::snprintf(out->bus_id, sizeof(out->bus_id), "%s", bus_id.c_str());
  std::snprintf(out->bus_id_legacy, sizeof(out->bus_id_legacy), "%.15s",
                bus_id.size() > 4 ? bus_id.c_str() + 4 : "");
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned slot = 0;
  if (std::sscanf(bus_id.c_str(), "%x:%x:%x", &domain, &bus, &slot) == 3) {
    out->domain = domain;
    out->bus = bus;
    out->device = slot;
  }
  out->pci_device_id = call.model().pci_device_id;
  if (call.player().corrupt()) std::memset(out->bus_id, 'X', sizeof(out->bus_id));
  return kNvmlSuccess;
}

NvmlReturn DeviceText(std::string_view function, NvmlDevice device,
                      std::string DeviceModel::*member, char* out, uint32_t size) {
  const Call call(function, device, Takes::kBoth);
  if (call.rc() != kNvmlSuccess) return call.rc();
  const std::string& text = call.model().*member;
  return text.empty() ? kNvmlNotSupported : call.CopyText(text, out, size);
}

// NVML has no separate call that says which generation a name belongs to: unless the script gives
// the value, it follows from the name as the known boards have it.
struct Board {
  std::string_view part;
  uint32_t architecture;
  int32_t major, minor;
};

const Board& BoardOf(const std::string& name) {
  static constexpr Board kBoards[] = {
      {"V100", kNvmlArchVolta, 7, 0},        {"T4", kNvmlArchTuring, 7, 5},
      {"RTX 20", kNvmlArchTuring, 7, 5},     {"A100", kNvmlArchAmpere, 8, 0},
      {"A10", kNvmlArchAmpere, 8, 6},        {"RTX 30", kNvmlArchAmpere, 8, 6},
      {"L40", kNvmlArchAda, 8, 9},           {"L4", kNvmlArchAda, 8, 9},
      {"RTX 40", kNvmlArchAda, 8, 9},        {"H100", kNvmlArchHopper, 9, 0},
      {"H200", kNvmlArchHopper, 9, 0},       {"GH200", kNvmlArchHopper, 9, 0},
      {"GB10", kNvmlArchBlackwell, 12, 1},   {"B200", kNvmlArchBlackwell, 10, 0},
      {"RTX 50", kNvmlArchBlackwell, 12, 0}, {"", UINT32_MAX, 0, 0}};
  for (const Board& board : kBoards) {
    if (name.find(board.part) != std::string::npos) return board;
  }
  return kBoards[0];
}

}  // namespace
}  // namespace nvml_replay

using nvml_replay::Call;
using nvml_replay::DeviceModel;
using nvml_replay::Takes;

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetUUID(NvmlDevice device, char* out, uint32_t size) {
  return nvml_replay::DeviceText("nvmlDeviceGetUUID", device, &DeviceModel::uuid, out, size);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetName(NvmlDevice device, char* out, uint32_t size) {
  return nvml_replay::DeviceText("nvmlDeviceGetName", device, &DeviceModel::name, out, size);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetSerial(NvmlDevice device, char* out, uint32_t size) {
  return nvml_replay::DeviceText("nvmlDeviceGetSerial", device, &DeviceModel::serial, out, size);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetPciInfo_v3(NvmlDevice device, NvmlPciInfo* out) {
  return nvml_replay::PciInfo("nvmlDeviceGetPciInfo_v3", device, out);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetPciInfo_v2(NvmlDevice device, NvmlPciInfo* out) {
  return nvml_replay::PciInfo("nvmlDeviceGetPciInfo_v2", device, out);
}

// Follows the order of the script unless the value "minor" says otherwise: indices may move, the
// device node doesn't.
EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetMinorNumber(NvmlDevice device, uint32_t* minor) {
  const Call call("nvmlDeviceGetMinorNumber", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (minor == nullptr) return kNvmlInvalidArgument;
  if (call.player().HasKey(call.unit(), "minor")) return call.Put("minor", minor);
  *minor = static_cast<uint32_t>(call.unit().device);
  return kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetArchitecture(NvmlDevice device, uint32_t* out) {
  const Call call("nvmlDeviceGetArchitecture", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (out == nullptr) return kNvmlInvalidArgument;
  if (call.player().HasKey(call.unit(), "architecture")) return call.Put("architecture", out);
  *out = nvml_replay::BoardOf(call.model().name).architecture;
  return kNvmlSuccess;
}

// The value "compute_capability" is 10 * major + minor.
EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetCudaComputeCapability(NvmlDevice device, int32_t* major,
                                                                int32_t* minor) {
  const Call call("nvmlDeviceGetCudaComputeCapability", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (major == nullptr || minor == nullptr) return kNvmlInvalidArgument;
  const auto& board = nvml_replay::BoardOf(call.model().name);
  int32_t both = 10 * board.major + board.minor;
  if (call.player().HasKey(call.unit(), "compute_capability")) {
    const NvmlReturn rc = call.Put("compute_capability", &both);
    if (rc != kNvmlSuccess) return rc;
  }
  if (both == 0) return kNvmlNotSupported;
  *major = both / 10;
  *minor = both % 10;
  return kNvmlSuccess;
}

EPM_REPLAY_U32(nvmlDeviceGetBrand, "brand")
EPM_REPLAY_U32(nvmlDeviceGetBoardId, "board_id")
EPM_REPLAY_U32(nvmlDeviceGetMultiGpuBoard, "multi_gpu_board")
EPM_REPLAY_U32(nvmlDeviceGetModuleId, "module_id")
EPM_REPLAY_U32(nvmlDeviceGetNumaNodeId, "numa_node")

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetAddressingMode(NvmlDevice device,
                                                         NvmlAddressingModeV1* out) {
  const Call call("nvmlDeviceGetAddressingMode", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (out == nullptr) return kNvmlInvalidArgument;
  if (out->version != static_cast<uint32_t>(kNvmlAddressingModeV1Version)) {
    return kNvmlArgumentVersionMismatch;
  }
  return call.Put("addressing_mode", &out->mode);
}

EPM_REPLAY_U32(nvmlDeviceGetPersistenceMode, "persistence_mode")
EPM_REPLAY_U32_BOTH(nvmlDeviceGetComputeMode, "compute_mode")
EPM_REPLAY_U32(nvmlDeviceGetVirtualizationMode, "virtualization_mode")
