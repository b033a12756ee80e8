// SPDX-License-Identifier: Apache-2.0
// The NVML functions that were found in the loaded library. A null pointer means that neither the
// function nor an older equivalent is there; callers treat that as FUNCTION_NOT_FOUND.
#pragma once

#include <cstdint>

#include "collect/nvml/abi.h"

namespace epochmeter::collect::nvml {

// Which struct the process list call fills; see library.cc for the rule.
enum class ProcessLayout : uint8_t { kNone, kV1, kV2, kR535 };

struct Api {
  NvmlReturn (*init_with_flags)(uint32_t flags);
  NvmlReturn (*init)();
  NvmlReturn (*shutdown)();
  const char* (*error_string)(NvmlReturn);
  NvmlReturn (*driver_version)(char*, uint32_t);
  NvmlReturn (*nvml_version)(char*, uint32_t);
  NvmlReturn (*device_count)(uint32_t*);
  NvmlReturn (*handle_by_index)(uint32_t, NvmlDevice*);
  NvmlReturn (*handle_by_uuid)(const char*, NvmlDevice*);
  NvmlReturn (*handle_by_bus_id)(const char*, NvmlDevice*);
  NvmlReturn (*uuid)(NvmlDevice, char*, uint32_t);
  NvmlReturn (*name)(NvmlDevice, char*, uint32_t);
  NvmlReturn (*serial)(NvmlDevice, char*, uint32_t);
  NvmlReturn (*pci_info)(NvmlDevice, NvmlPciInfo*);
  NvmlReturn (*minor_number)(NvmlDevice, uint32_t*);
  NvmlReturn (*mig_mode)(NvmlDevice, uint32_t*, uint32_t*);
  NvmlReturn (*memory_v2)(NvmlDevice, NvmlMemoryV2*);
  NvmlReturn (*memory)(NvmlDevice, NvmlMemory*);
  NvmlReturn (*utilization)(NvmlDevice, NvmlUtilization*);
  NvmlReturn (*temperature_v)(NvmlDevice, NvmlTemperatureV1*);
  NvmlReturn (*temperature)(NvmlDevice, uint32_t, uint32_t*);
  NvmlReturn (*temperature_threshold)(NvmlDevice, uint32_t, uint32_t*);
  NvmlReturn (*power_usage)(NvmlDevice, uint32_t*);
  NvmlReturn (*enforced_power_limit)(NvmlDevice, uint32_t*);
  NvmlReturn (*total_energy)(NvmlDevice, uint64_t*);
  NvmlReturn (*field_values)(NvmlDevice, int32_t, NvmlFieldValue*);
  NvmlReturn (*clock)(NvmlDevice, uint32_t, uint32_t*);
  NvmlReturn (*max_clock)(NvmlDevice, uint32_t, uint32_t*);
  NvmlReturn (*clock_event_reasons)(NvmlDevice, uint64_t*);
  NvmlReturn (*compute_processes)(NvmlDevice, uint32_t*, void*);
  NvmlReturn (*gpm_support)(NvmlDevice, NvmlGpmSupport*);
  NvmlReturn (*gpm_sample_alloc)(NvmlGpmSample*);
  NvmlReturn (*gpm_sample_free)(NvmlGpmSample);
  NvmlReturn (*gpm_sample_get)(NvmlDevice, NvmlGpmSample);
  NvmlReturn (*gpm_metrics_get)(NvmlGpmMetricsGet*);
  ProcessLayout process_layout;
};

}  // namespace epochmeter::collect::nvml
