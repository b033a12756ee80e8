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
  NvmlReturn (*architecture)(NvmlDevice, uint32_t*);
  NvmlReturn (*compute_capability)(NvmlDevice, int32_t* major, int32_t* minor);
  NvmlReturn (*brand)(NvmlDevice, uint32_t*);
  NvmlReturn (*numa_node)(NvmlDevice, uint32_t*);
  NvmlReturn (*addressing_mode)(NvmlDevice, NvmlAddressingModeV1*);
  NvmlReturn (*persistence_mode)(NvmlDevice, uint32_t*);
  NvmlReturn (*virtualization_mode)(NvmlDevice, uint32_t*);
  NvmlReturn (*memory_v2)(NvmlDevice, NvmlMemoryV2*);
  NvmlReturn (*memory)(NvmlDevice, NvmlMemory*);
  NvmlReturn (*bar1_memory)(NvmlDevice, NvmlBar1Memory*);
  NvmlReturn (*utilization)(NvmlDevice, NvmlUtilization*);
  NvmlReturn (*temperature_v)(NvmlDevice, NvmlTemperatureV1*);
  NvmlReturn (*temperature)(NvmlDevice, uint32_t, uint32_t*);
  NvmlReturn (*temperature_threshold)(NvmlDevice, uint32_t, uint32_t*);
  NvmlReturn (*margin_temperature)(NvmlDevice, NvmlMarginTemperatureV1*);
  NvmlReturn (*fan_count)(NvmlDevice, uint32_t*);
  NvmlReturn (*fan_speed_v2)(NvmlDevice, uint32_t fan, uint32_t* percent);
  NvmlReturn (*fan_speed)(NvmlDevice, uint32_t* percent);  // older: fan 0
  NvmlReturn (*fan_rpm)(NvmlDevice, NvmlFanSpeedInfoV1*);
  NvmlReturn (*power_usage)(NvmlDevice, uint32_t*);
  NvmlReturn (*enforced_power_limit)(NvmlDevice, uint32_t*);
  NvmlReturn (*power_limit)(NvmlDevice, uint32_t*);
  NvmlReturn (*power_limit_range)(NvmlDevice, uint32_t* least, uint32_t* most);
  NvmlReturn (*default_power_limit)(NvmlDevice, uint32_t*);
  NvmlReturn (*total_energy)(NvmlDevice, uint64_t*);
  NvmlReturn (*field_values)(NvmlDevice, int32_t, NvmlFieldValue*);
  NvmlReturn (*samples)(NvmlDevice, uint32_t type, uint64_t last_seen_us, uint32_t* value_type,
                        uint32_t* count, NvmlSample*);
  NvmlReturn (*violation)(NvmlDevice, uint32_t policy, NvmlViolationTime*);
  NvmlReturn (*performance_state)(NvmlDevice, uint32_t*);
  NvmlReturn (*encoder)(NvmlDevice, uint32_t* percent, uint32_t* period_us);
  NvmlReturn (*decoder)(NvmlDevice, uint32_t* percent, uint32_t* period_us);
  NvmlReturn (*jpg)(NvmlDevice, uint32_t* percent, uint32_t* period_us);
  NvmlReturn (*ofa)(NvmlDevice, uint32_t* percent, uint32_t* period_us);
  NvmlReturn (*pcie_generation)(NvmlDevice, uint32_t*);
  NvmlReturn (*pcie_width)(NvmlDevice, uint32_t*);
  NvmlReturn (*max_pcie_generation)(NvmlDevice, uint32_t*);
  NvmlReturn (*max_pcie_width)(NvmlDevice, uint32_t*);
  NvmlReturn (*pcie_replays)(NvmlDevice, uint32_t*);
  NvmlReturn (*nvlink_state)(NvmlDevice, uint32_t link, uint32_t* active);
  NvmlReturn (*ecc_errors)(NvmlDevice, uint32_t error, uint32_t counter, uint64_t*);
  NvmlReturn (*remapped_rows)(NvmlDevice, uint32_t* corrected, uint32_t* uncorrected,
                              uint32_t* pending, uint32_t* failed);
  NvmlReturn (*clock)(NvmlDevice, uint32_t, uint32_t*);
  NvmlReturn (*max_clock)(NvmlDevice, uint32_t, uint32_t*);
  NvmlReturn (*clock_event_reasons)(NvmlDevice, uint64_t*);
  // The lists of processes fill the layout of process_layout.
  NvmlReturn (*compute_processes)(NvmlDevice, uint32_t*, void*);
  NvmlReturn (*graphics_processes)(NvmlDevice, uint32_t*, void*);
  NvmlReturn (*mps_processes)(NvmlDevice, uint32_t*, void*);
  NvmlReturn (*process_utilization)(NvmlDevice, NvmlProcessUtilizationSample*, uint32_t* count,
                                    uint64_t last_seen_us);
  NvmlReturn (*processes_utilization)(NvmlDevice, NvmlProcessesUtilizationInfoV1*);
  NvmlReturn (*mig_mode)(NvmlDevice, uint32_t* current, uint32_t* pending);
  NvmlReturn (*max_mig_devices)(NvmlDevice, uint32_t*);
  NvmlReturn (*mig_handle)(NvmlDevice, uint32_t index, NvmlDevice*);
  NvmlReturn (*gpu_instance_id)(NvmlDevice, uint32_t*);
  NvmlReturn (*compute_instance_id)(NvmlDevice, uint32_t*);
  NvmlReturn (*attributes)(NvmlDevice, NvmlDeviceAttributes*);
  NvmlReturn (*event_set_create)(NvmlEventSet*);
  NvmlReturn (*event_set_free)(NvmlEventSet);
  NvmlReturn (*supported_events)(NvmlDevice, uint64_t*);
  NvmlReturn (*register_events)(NvmlDevice, uint64_t types, NvmlEventSet);
  NvmlReturn (*event_wait)(NvmlEventSet, NvmlEventData*, uint32_t timeout_ms);
  NvmlReturn (*gpm_support)(NvmlDevice, NvmlGpmSupport*);
  NvmlReturn (*gpm_sample_alloc)(NvmlGpmSample*);
  NvmlReturn (*gpm_sample_free)(NvmlGpmSample);
  NvmlReturn (*gpm_sample_get)(NvmlDevice, NvmlGpmSample);
  NvmlReturn (*gpm_mig_sample_get)(NvmlDevice parent, uint32_t gpu_instance, NvmlGpmSample);
  NvmlReturn (*gpm_metrics_get)(NvmlGpmMetricsGet*);
  ProcessLayout process_layout;
};

}  // namespace epochmeter::collect::nvml
