// SPDX-License-Identifier: Apache-2.0
// Exported calls: initialisation, versions, error texts.
#include "call.h"
#include "generation.h"

namespace nvml_replay {
namespace {

// A fault on the name makes it fail, hang or crash; a failed one leaves nothing initialised.
NvmlReturn InitNamed(std::string_view function) {
  Player& player = Player::Get();
  const std::lock_guard<std::recursive_mutex> lock(player.mutex());
  const NvmlReturn rc = player.Init();
  if (rc != kNvmlSuccess) return rc;
  const Call call(function);
  if (call.rc() != kNvmlSuccess) player.Shutdown();
  return call.rc();
}

NvmlReturn CudaVersion(std::string_view function, int32_t* version) {
  const Call call(function);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (version == nullptr) return kNvmlInvalidArgument;
  *version = kGeneration.cuda_version;
  return kNvmlSuccess;
}

NvmlReturn SystemText(std::string_view function, std::string Scenario::*member, char* out,
                      uint32_t size) {
  const Call call(function);
  if (call.rc() != kNvmlSuccess) return call.rc();
  return call.CopyText(call.player().scenario().*member, out, size);
}

}  // namespace
}  // namespace nvml_replay

using nvml_replay::Call;
using nvml_replay::Scenario;

EPM_REPLAY_EXPORT NvmlReturn nvmlInit() { return nvml_replay::InitNamed("nvmlInit"); }
EPM_REPLAY_EXPORT NvmlReturn nvmlInit_v2() { return nvml_replay::InitNamed("nvmlInit_v2"); }
EPM_REPLAY_EXPORT NvmlReturn nvmlInitWithFlags(uint32_t) {
  return nvml_replay::InitNamed("nvmlInitWithFlags");
}

EPM_REPLAY_EXPORT NvmlReturn nvmlShutdown() {
  const Call call("nvmlShutdown");
  return call.rc() != kNvmlSuccess ? call.rc() : call.player().Shutdown();
}

EPM_REPLAY_EXPORT const char* nvmlErrorString(NvmlReturn code) {
  switch (code) {
    case kNvmlSuccess:
      return "Success";
    case kNvmlUninitialized:
      return "Uninitialized";
    case kNvmlInvalidArgument:
      return "Invalid Argument";
    case kNvmlNotSupported:
      return "Not Supported";
    case kNvmlNoPermission:
      return "Insufficient Permissions";
    case kNvmlNotFound:
      return "Not Found";
    case kNvmlInsufficientSize:
      return "Insufficient Size";
    case kNvmlDriverNotLoaded:
      return "Driver Not Loaded";
    case kNvmlTimeout:
      return "Timeout";
    case kNvmlFunctionNotFound:
      return "Function Not Found";
    case kNvmlGpuIsLost:
      return "GPU is lost";
    case kNvmlResetRequired:
      return "GPU requires reset";
    case kNvmlOperatingSystem:
      return "GPU access blocked by the operating system";
    case kNvmlLibRmVersionMismatch:
      return "Driver/library version mismatch";
    case kNvmlArgumentVersionMismatch:
      return "Argument version mismatch";
    default:
      return "Unknown Error";
  }
}

EPM_REPLAY_EXPORT NvmlReturn nvmlSystemGetDriverVersion(char* out, uint32_t size) {
  return nvml_replay::SystemText("nvmlSystemGetDriverVersion", &Scenario::driver_version, out,
                                 size);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlSystemGetNVMLVersion(char* out, uint32_t size) {
  return nvml_replay::SystemText("nvmlSystemGetNVMLVersion", &Scenario::nvml_version, out, size);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlSystemGetCudaDriverVersion(int32_t* version) {
  return nvml_replay::CudaVersion("nvmlSystemGetCudaDriverVersion", version);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlSystemGetCudaDriverVersion_v2(int32_t* version) {
  return nvml_replay::CudaVersion("nvmlSystemGetCudaDriverVersion_v2", version);
}
