// SPDX-License-Identifier: Apache-2.0
// What the CUDA toolkit ships under lib64/stubs: enough to link against, and a warning for whoever
// loads it. EPOCHMETER_REPLAY_STUB_RETURN sets the code of nvmlInit (default 9; some answer 999).
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "collect/nvml/abi_codes.h"

namespace {

int32_t Refuse() {
  const char* code = std::getenv("EPOCHMETER_REPLAY_STUB_RETURN");
  return code != nullptr && *code != '\0' ? std::atoi(code) : kNvmlDriverNotLoaded;
}

__attribute__((constructor)) void Warn() {
  std::fputs(
      "\nWARNING:\n\nA stub of libnvidia-ml is loaded instead of the driver's library.\n"
      "It serves to link programs only and answers every call with an error.\n\n",
      stderr);
}

}  // namespace

#define EPM_STUB_EXPORT extern "C" __attribute__((visibility("default")))

EPM_STUB_EXPORT int32_t nvmlInit() { return Refuse(); }
EPM_STUB_EXPORT int32_t nvmlInit_v2() { return Refuse(); }
EPM_STUB_EXPORT int32_t nvmlInitWithFlags(uint32_t) { return Refuse(); }
EPM_STUB_EXPORT int32_t nvmlShutdown() { return kNvmlUninitialized; }
EPM_STUB_EXPORT const char* nvmlErrorString(int32_t) { return "Unknown Error"; }
EPM_STUB_EXPORT int32_t nvmlSystemGetDriverVersion(char*, uint32_t) { return Refuse(); }
EPM_STUB_EXPORT int32_t nvmlSystemGetNVMLVersion(char*, uint32_t) { return Refuse(); }
EPM_STUB_EXPORT int32_t nvmlDeviceGetCount_v2(uint32_t*) { return Refuse(); }
EPM_STUB_EXPORT int32_t nvmlDeviceGetHandleByIndex_v2(uint32_t, void*) { return Refuse(); }
