// SPDX-License-Identifier: Apache-2.0
// Scalars and handles of NVML's binary interface. Valid C11 and C++20.
#pragma once

#include <stdint.h>

typedef int32_t NvmlReturn;
typedef struct NvmlDeviceOpaque* NvmlDevice;
typedef struct NvmlGpmSampleOpaque* NvmlGpmSample;
typedef struct NvmlEventSetOpaque* NvmlEventSet;
typedef struct NvmlSystemEventSetOpaque* NvmlSystemEventSet;

// "Not one of them" where a GPU or compute instance id is expected.
static const uint32_t kNvmlNoInstance = 0xFFFFFFFFU;
