// SPDX-License-Identifier: Apache-2.0
// The part of NVML's binary interface that epochmeter calls, declared by ourselves: no CUDA or
// driver package is needed to build or to run. Valid C11 and C++20, so that the replay library
// speaks exactly the layouts the collector expects. Units are those of the driver (mW, mJ, MHz,
// percent, bytes, microseconds). Sizes are asserted, because a wrong one corrupts memory silently.
#pragma once

#include <assert.h>
#include <stdint.h>

#include "collect/nvml/abi_codes.h"

typedef int32_t NvmlReturn;
typedef struct NvmlDeviceOpaque* NvmlDevice;
typedef struct NvmlGpmSampleOpaque* NvmlGpmSample;

typedef struct NvmlUtilization {
  uint32_t gpu;
  uint32_t memory;
} NvmlUtilization;

// Version 1: used includes what the driver reserves.
typedef struct NvmlMemory {
  uint64_t total;
  uint64_t free;
  uint64_t used;
} NvmlMemory;

typedef struct NvmlMemoryV2 {
  uint32_t version;
  uint64_t total;
  uint64_t reserved;
  uint64_t free;
  uint64_t used;
} NvmlMemoryV2;

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

typedef union NvmlValue {
  double dbl;
  int32_t i32;
  uint32_t u32;
  unsigned long ulong_value;
  uint64_t u64;
  int64_t i64;
  uint16_t u16;
} NvmlValue;

typedef struct NvmlFieldValue {
  uint32_t field_id;
  uint32_t scope_id;
  int64_t timestamp_us;
  int64_t latency_us;
  uint32_t value_type;
  NvmlReturn nvml_return;
  NvmlValue value;
} NvmlFieldValue;

typedef struct NvmlSample {
  uint64_t timestamp_us;
  NvmlValue value;
} NvmlSample;

typedef struct NvmlPciInfo {
  char bus_id_legacy[16];
  uint32_t domain;
  uint32_t bus;
  uint32_t device;
  uint32_t pci_device_id;
  uint32_t pci_subsystem_id;
  char bus_id[32];
} NvmlPciInfo;

typedef struct NvmlTemperatureV1 {
  uint32_t version;
  uint32_t sensor;
  int32_t temperature_c;
} NvmlTemperatureV1;

typedef struct NvmlGpmMetric {
  uint32_t metric_id;
  NvmlReturn nvml_return;
  double value;
  const char* short_name;
  const char* long_name;
  const char* unit;
} NvmlGpmMetric;

typedef struct NvmlGpmMetricsGet {
  uint32_t version;
  uint32_t num_metrics;
  NvmlGpmSample sample1;
  NvmlGpmSample sample2;
  NvmlGpmMetric metrics[kNvmlGpmMetricMax];
} NvmlGpmMetricsGet;

typedef struct NvmlGpmSupport {
  uint32_t version;
  uint32_t is_supported;
} NvmlGpmSupport;

// The version word of a versioned struct: its size, and its version in the top byte.
enum {
  kNvmlMemoryV2Version = (int)(sizeof(NvmlMemoryV2) | (2U << 24)),
  kNvmlTemperatureV1Version = (int)(sizeof(NvmlTemperatureV1) | (1U << 24))
};

static_assert(sizeof(NvmlMemory) == 24, "NVML memory v1");
static_assert(sizeof(NvmlMemoryV2) == 40, "NVML memory v2");
static_assert(kNvmlMemoryV2Version == 0x02000028, "NVML memory v2 version word");
static_assert(sizeof(NvmlProcessInfoV1) == 16, "NVML process info v1");
static_assert(sizeof(NvmlProcessInfo) == 24, "NVML process info v2");
static_assert(sizeof(NvmlProcessInfoR535) == 32, "NVML process info of early R535");
static_assert(sizeof(NvmlProcessUtilizationSample) == 32, "NVML process utilisation");
static_assert(sizeof(NvmlFieldValue) == 40, "NVML field value");
static_assert(sizeof(NvmlSample) == 16, "NVML sample");
static_assert(sizeof(NvmlPciInfo) == 68, "NVML PCI info");
static_assert(kNvmlTemperatureV1Version == 0x0100000C, "NVML temperature v1 version word");
static_assert(sizeof(NvmlGpmMetric) == 40, "NVML GPM metric");
static_assert(sizeof(NvmlGpmMetricsGet) == 13344, "NVML GPM metrics call");
