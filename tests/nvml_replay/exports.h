// SPDX-License-Identifier: Apache-2.0
// Shared by the files that define the exported NVML names.
#pragma once

#include <string>

#include "player.h"

#define EPM_REPLAY_EXPORT extern "C" __attribute__((visibility("default")))

namespace nvml_replay {

// Copies with the terminating zero; the code a driver gives for a null or too small buffer.
NvmlReturn CopyText(const std::string& text, char* out, uint32_t size);

}  // namespace nvml_replay
