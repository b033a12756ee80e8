// SPDX-License-Identifier: Apache-2.0
// The process lists of NVML's binary interface. Valid C11 and C++20. Memory is in bytes,
// utilisation in percent, time stamps in us of a CPU clock that the driver chooses.
#pragma once

#include <assert.h>
#include <stdint.h>

typedef struct NvmlProcessInfoV1 {
  uint32_t pid;
  uint64_t used_gpu_memory;
} NvmlProcessInfoV1;

// Filled by the _v2 and _v3 calls, except in early R535 drivers (NvmlProcessInfoR535).
typedef struct NvmlProcessInfo {
  uint32_t pid;
  uint64_t used_gpu_memory;
  uint32_t gpu_instance_id;
  uint32_t compute_instance_id;
} NvmlProcessInfo;

typedef struct NvmlProcessInfoR535 {
  uint32_t pid;
  uint64_t used_gpu_memory;
  uint32_t gpu_instance_id;
  uint32_t compute_instance_id;
  uint64_t protected_memory;
} NvmlProcessInfoR535;

typedef struct NvmlProcessUtilizationSample {
  uint32_t pid;
  uint64_t timestamp_us;
  uint32_t sm_util;
  uint32_t mem_util;
  uint32_t enc_util;
  uint32_t dec_util;
} NvmlProcessUtilizationSample;

// One entry of the R550 call.
typedef struct NvmlProcessUtilizationInfoV1 {
  uint64_t timestamp_us;
  uint32_t pid;
  uint32_t sm_util;
  uint32_t mem_util;
  uint32_t enc_util;
  uint32_t dec_util;
  uint32_t jpg_util;
  uint32_t ofa_util;
} NvmlProcessUtilizationInfoV1;

// In: room and last_seen_us. Out: the number of entries.
typedef struct NvmlProcessesUtilizationInfoV1 {
  uint32_t version;
  uint32_t count;
  uint64_t last_seen_us;
  NvmlProcessUtilizationInfoV1* entries;
} NvmlProcessesUtilizationInfoV1;

typedef struct NvmlProcessDetailV1 {
  uint32_t pid;
  uint64_t used_gpu_memory;
  uint32_t gpu_instance_id;
  uint32_t compute_instance_id;
  uint64_t protected_memory;
} NvmlProcessDetailV1;

// mode: 0 compute, 1 graphics, 2 MPS. In: room. Out: the number of entries.
typedef struct NvmlProcessDetailListV1 {
  uint32_t version;
  uint32_t mode;
  uint32_t count;
  NvmlProcessDetailV1* entries;
} NvmlProcessDetailListV1;

enum {
  kNvmlProcessesUtilizationInfoV1Version =
      (int)(sizeof(NvmlProcessesUtilizationInfoV1) | (1U << 24)),
  kNvmlProcessDetailListV1Version = (int)(sizeof(NvmlProcessDetailListV1) | (1U << 24))
};

static_assert(sizeof(NvmlProcessInfoV1) == 16, "NVML process info v1");
static_assert(sizeof(NvmlProcessInfo) == 24, "NVML process info v2");
static_assert(sizeof(NvmlProcessInfoR535) == 32, "NVML process info of early R535");
static_assert(sizeof(NvmlProcessUtilizationSample) == 32, "NVML process utilisation");
static_assert(sizeof(NvmlProcessUtilizationInfoV1) == 40, "NVML process utilisation of R550");
static_assert(sizeof(NvmlProcessDetailV1) == 32, "NVML process detail");
static_assert(kNvmlProcessDetailListV1Version == 0x01000018, "NVML process detail version word");
