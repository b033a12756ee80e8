// SPDX-License-Identifier: Apache-2.0
// Events of NVML's binary interface: those of devices (XID, ECC, clocks) and, from R575 on, those
// of the driver binding GPUs. Valid C11 and C++20.
#pragma once

#include <assert.h>
#include <stdint.h>

#include "collect/nvml/abi_types.h"

enum NvmlEventType {
  kNvmlEventSingleBitEcc = 0x1,
  kNvmlEventDoubleBitEcc = 0x2,
  kNvmlEventPstate = 0x4,
  kNvmlEventXid = 0x8,
  kNvmlEventClock = 0x10,
  kNvmlEventPowerSource = 0x80,
  kNvmlEventEccStorm = 0x200,
  kNvmlEventDramRetirement = 0x400,
  kNvmlEventDramRetirementFailure = 0x800,
  kNvmlEventNonFatalPoison = 0x1000,
  kNvmlEventFatalPoison = 0x2000,
  kNvmlEventGpuUnavailable = 0x4000,
  kNvmlEventRecoveryAction = 0x8000
};

// data: the XID (999 unknown) of an XID event. The instance ids are set for XIDs under MIG, else
// kNvmlNoInstance; nvmlEventSetWait (without _v2) leaves them alone.
typedef struct NvmlEventData {
  NvmlDevice device;
  uint64_t type;
  uint64_t data;
  uint32_t gpu_instance_id;
  uint32_t compute_instance_id;
} NvmlEventData;

enum NvmlSystemEventType { kNvmlSystemEventUnbind = 0x1, kNvmlSystemEventBind = 0x2 };

typedef struct NvmlSystemEventSetRequestV1 {  // create and free
  uint32_t version;
  NvmlSystemEventSet set;
} NvmlSystemEventSetRequestV1;

typedef struct NvmlSystemRegisterEventsV1 {
  uint32_t version;
  uint64_t types;
  NvmlSystemEventSet set;
} NvmlSystemRegisterEventsV1;

typedef struct NvmlSystemEventDataV1 {
  uint64_t type;
  uint32_t gpu_id;
} NvmlSystemEventDataV1;

// In: timeout, set, entries and room. Out: count.
typedef struct NvmlSystemEventWaitV1 {
  uint32_t version;
  uint32_t timeout_ms;
  NvmlSystemEventSet set;
  NvmlSystemEventDataV1* entries;
  uint32_t room;
  uint32_t count;
} NvmlSystemEventWaitV1;

enum {
  kNvmlSystemEventSetRequestV1Version = (int)(sizeof(NvmlSystemEventSetRequestV1) | (1U << 24)),
  kNvmlSystemRegisterEventsV1Version = (int)(sizeof(NvmlSystemRegisterEventsV1) | (1U << 24)),
  kNvmlSystemEventWaitV1Version = (int)(sizeof(NvmlSystemEventWaitV1) | (1U << 24))
};

static_assert(sizeof(NvmlEventData) == 32, "NVML event data");
static_assert(sizeof(NvmlSystemEventWaitV1) == 32, "NVML system event wait");
