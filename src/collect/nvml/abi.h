// SPDX-License-Identifier: Apache-2.0
// The part of NVML's binary interface that epochmeter calls, declared by ourselves: no CUDA or
// driver package is needed to build or to run. Valid C11 and C++20, so that the replay library
// speaks exactly the layouts the collector expects. Units are those of the driver (mW, mJ, MHz,
// percent, bytes, microseconds). Sizes are asserted, because a wrong one corrupts memory silently.
#pragma once

#include <assert.h>
#include <stdint.h>

#include "collect/nvml/abi_codes.h"
#include "collect/nvml/abi_events.h"
#include "collect/nvml/abi_gpm.h"
#include "collect/nvml/abi_processes.h"
#include "collect/nvml/abi_types.h"

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

typedef struct NvmlBar1Memory {
  uint64_t total;
  uint64_t free;
  uint64_t used;
} NvmlBar1Memory;

// Sizes of a GPU or MIG device; memory_mib is in MiB.
typedef struct NvmlDeviceAttributes {
  uint32_t multiprocessors;
  uint32_t shared_copy_engines;
  uint32_t shared_decoders;
  uint32_t shared_encoders;
  uint32_t shared_jpeg;
  uint32_t shared_ofa;
  uint32_t gpu_instance_slices;
  uint32_t compute_instance_slices;
  uint64_t memory_mib;
} NvmlDeviceAttributes;

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

// Degrees until the slowdown threshold; negative above it.
typedef struct NvmlMarginTemperatureV1 {
  uint32_t version;
  int32_t margin_c;
} NvmlMarginTemperatureV1;

typedef struct NvmlFanSpeedInfoV1 {
  uint32_t version;
  uint32_t fan;
  uint32_t rpm;
} NvmlFanSpeedInfoV1;

typedef struct NvmlAddressingModeV1 {
  uint32_t version;
  uint32_t mode;
} NvmlAddressingModeV1;

// A CPU time stamp in us, and ns of violation since the driver was loaded.
typedef struct NvmlViolationTime {
  uint64_t reference_us;
  uint64_t violation_ns;
} NvmlViolationTime;

// The version word of a versioned struct: its size, and its version in the top byte.
enum {
  kNvmlMemoryV2Version = (int)(sizeof(NvmlMemoryV2) | (2U << 24)),
  kNvmlTemperatureV1Version = (int)(sizeof(NvmlTemperatureV1) | (1U << 24)),
  kNvmlMarginTemperatureV1Version = (int)(sizeof(NvmlMarginTemperatureV1) | (1U << 24)),
  kNvmlFanSpeedInfoV1Version = (int)(sizeof(NvmlFanSpeedInfoV1) | (1U << 24)),
  kNvmlAddressingModeV1Version = (int)(sizeof(NvmlAddressingModeV1) | (1U << 24))
};

static_assert(sizeof(NvmlMemory) == 24, "NVML memory v1");
static_assert(sizeof(NvmlMemoryV2) == 40, "NVML memory v2");
static_assert(kNvmlMemoryV2Version == 0x02000028, "NVML memory v2 version word");
static_assert(sizeof(NvmlFieldValue) == 40, "NVML field value");
static_assert(sizeof(NvmlSample) == 16, "NVML sample");
static_assert(sizeof(NvmlPciInfo) == 68, "NVML PCI info");
static_assert(kNvmlTemperatureV1Version == 0x0100000C, "NVML temperature v1 version word");
static_assert(sizeof(NvmlBar1Memory) == 24, "NVML BAR1 memory");
static_assert(sizeof(NvmlDeviceAttributes) == 40, "NVML device attributes");
