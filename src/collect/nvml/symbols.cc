// SPDX-License-Identifier: Apache-2.0
#include "collect/nvml/symbols.h"

#include <dlfcn.h>

#include <initializer_list>

namespace epochmeter::collect::nvml {
namespace {

struct Binder {
  void* library;
  ChosenSymbols* chosen;

  bool Has(const char* name) const { return dlsym(library, name) != nullptr; }

  // Looks the names up newest first: an older driver lacks the newer ones, and the older forms
  // have the same signature.
  template <typename Function>
  void Bind(Function* out, std::initializer_list<const char*> names) const {
    const char* found = "";
    for (const char* name : names) {
      *out = reinterpret_cast<Function>(dlsym(library, name));
      if (*out == nullptr) continue;
      found = name;
      break;
    }
    if (names.size() > 1 || *out == nullptr) chosen->emplace_back(*names.begin(), found);
  }
};

// Drivers 535.43 to 535.86 filled 32-byte entries through the _v3 name. They are the ones that
// export the confidential-computing size call but not yet the process detail list.
void BindProcesses(const Binder& binder, Api* api) {
  binder.Bind(&api->compute_processes,
              {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2",
               "nvmlDeviceGetComputeRunningProcesses"});
  binder.Bind(&api->graphics_processes, {"nvmlDeviceGetGraphicsRunningProcesses_v3",
                                         "nvmlDeviceGetGraphicsRunningProcesses_v2",
                                         "nvmlDeviceGetGraphicsRunningProcesses"});
  binder.Bind(&api->mps_processes, {"nvmlDeviceGetMPSComputeRunningProcesses_v3",
                                    "nvmlDeviceGetMPSComputeRunningProcesses_v2",
                                    "nvmlDeviceGetMPSComputeRunningProcesses"});
  if (api->compute_processes == nullptr) return;
  const bool v3 = binder.Has("nvmlDeviceGetComputeRunningProcesses_v3");
  const bool v2 = binder.Has("nvmlDeviceGetComputeRunningProcesses_v2");
  const bool early_r535 = v3 && binder.Has("nvmlDeviceGetConfComputeMemSizeInfo") &&
                          !binder.Has("nvmlDeviceGetRunningProcessDetailList");
  api->process_layout = early_r535 ? ProcessLayout::kR535
                        : v3 || v2 ? ProcessLayout::kV2
                                   : ProcessLayout::kV1;
}

void BindSystem(const Binder& binder, Api* api) {
  binder.Bind(&api->init_with_flags, {"nvmlInitWithFlags"});
  binder.Bind(&api->init, {"nvmlInit_v2", "nvmlInit"});
  binder.Bind(&api->shutdown, {"nvmlShutdown"});
  binder.Bind(&api->error_string, {"nvmlErrorString"});
  binder.Bind(&api->driver_version, {"nvmlSystemGetDriverVersion"});
  binder.Bind(&api->nvml_version, {"nvmlSystemGetNVMLVersion"});
  binder.Bind(&api->device_count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"});
  binder.Bind(&api->handle_by_index,
              {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
  binder.Bind(&api->handle_by_uuid, {"nvmlDeviceGetHandleByUUID"});
  binder.Bind(&api->handle_by_bus_id,
              {"nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByPciBusId"});
  binder.Bind(&api->event_set_create, {"nvmlEventSetCreate"});
  binder.Bind(&api->event_set_free, {"nvmlEventSetFree"});
  binder.Bind(&api->supported_events, {"nvmlDeviceGetSupportedEventTypes"});
  binder.Bind(&api->register_events, {"nvmlDeviceRegisterEvents"});
  binder.Bind(&api->event_wait, {"nvmlEventSetWait_v2", "nvmlEventSetWait"});
}

void BindIdentity(const Binder& binder, Api* api) {
  binder.Bind(&api->uuid, {"nvmlDeviceGetUUID"});
  binder.Bind(&api->name, {"nvmlDeviceGetName"});
  binder.Bind(&api->serial, {"nvmlDeviceGetSerial"});
  binder.Bind(&api->pci_info, {"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2"});
  binder.Bind(&api->minor_number, {"nvmlDeviceGetMinorNumber"});
  binder.Bind(&api->architecture, {"nvmlDeviceGetArchitecture"});
  binder.Bind(&api->compute_capability, {"nvmlDeviceGetCudaComputeCapability"});
  binder.Bind(&api->brand, {"nvmlDeviceGetBrand"});
  binder.Bind(&api->numa_node, {"nvmlDeviceGetNumaNodeId"});
  binder.Bind(&api->addressing_mode, {"nvmlDeviceGetAddressingMode"});
  binder.Bind(&api->persistence_mode, {"nvmlDeviceGetPersistenceMode"});
  binder.Bind(&api->virtualization_mode, {"nvmlDeviceGetVirtualizationMode"});
  binder.Bind(&api->mig_mode, {"nvmlDeviceGetMigMode"});
  binder.Bind(&api->max_mig_devices, {"nvmlDeviceGetMaxMigDeviceCount"});
  binder.Bind(&api->mig_handle, {"nvmlDeviceGetMigDeviceHandleByIndex"});
  binder.Bind(&api->gpu_instance_id, {"nvmlDeviceGetGpuInstanceId"});
  binder.Bind(&api->compute_instance_id, {"nvmlDeviceGetComputeInstanceId"});
  binder.Bind(&api->attributes, {"nvmlDeviceGetAttributes_v2"});
}

void BindReadings(const Binder& binder, Api* api) {
  binder.Bind(&api->memory_v2, {"nvmlDeviceGetMemoryInfo_v2"});
  binder.Bind(&api->memory, {"nvmlDeviceGetMemoryInfo"});
  binder.Bind(&api->bar1_memory, {"nvmlDeviceGetBAR1MemoryInfo"});
  binder.Bind(&api->utilization, {"nvmlDeviceGetUtilizationRates"});
  binder.Bind(&api->temperature_v, {"nvmlDeviceGetTemperatureV"});
  binder.Bind(&api->temperature, {"nvmlDeviceGetTemperature"});
  binder.Bind(&api->temperature_threshold, {"nvmlDeviceGetTemperatureThreshold"});
  binder.Bind(&api->margin_temperature, {"nvmlDeviceGetMarginTemperature"});
  binder.Bind(&api->fan_count, {"nvmlDeviceGetNumFans"});
  binder.Bind(&api->fan_speed_v2, {"nvmlDeviceGetFanSpeed_v2"});
  binder.Bind(&api->fan_speed, {"nvmlDeviceGetFanSpeed"});
  binder.Bind(&api->fan_rpm, {"nvmlDeviceGetFanSpeedRPM"});
  binder.Bind(&api->power_usage, {"nvmlDeviceGetPowerUsage"});
  binder.Bind(&api->enforced_power_limit, {"nvmlDeviceGetEnforcedPowerLimit"});
  binder.Bind(&api->power_limit, {"nvmlDeviceGetPowerManagementLimit"});
  binder.Bind(&api->power_limit_range, {"nvmlDeviceGetPowerManagementLimitConstraints"});
  binder.Bind(&api->default_power_limit, {"nvmlDeviceGetPowerManagementDefaultLimit"});
  binder.Bind(&api->total_energy, {"nvmlDeviceGetTotalEnergyConsumption"});
  binder.Bind(&api->field_values, {"nvmlDeviceGetFieldValues"});
  binder.Bind(&api->samples, {"nvmlDeviceGetSamples"});
  binder.Bind(&api->violation, {"nvmlDeviceGetViolationStatus"});
  binder.Bind(&api->performance_state, {"nvmlDeviceGetPerformanceState"});
  binder.Bind(&api->clock, {"nvmlDeviceGetClockInfo"});
  binder.Bind(&api->max_clock, {"nvmlDeviceGetMaxClockInfo"});
  binder.Bind(&api->clock_event_reasons, {"nvmlDeviceGetCurrentClocksEventReasons",
                                          "nvmlDeviceGetCurrentClocksThrottleReasons"});
}

void BindParts(const Binder& binder, Api* api) {
  binder.Bind(&api->encoder, {"nvmlDeviceGetEncoderUtilization"});
  binder.Bind(&api->decoder, {"nvmlDeviceGetDecoderUtilization"});
  binder.Bind(&api->jpg, {"nvmlDeviceGetJpgUtilization"});
  binder.Bind(&api->ofa, {"nvmlDeviceGetOfaUtilization"});
  binder.Bind(&api->pcie_generation, {"nvmlDeviceGetCurrPcieLinkGeneration"});
  binder.Bind(&api->pcie_width, {"nvmlDeviceGetCurrPcieLinkWidth"});
  binder.Bind(&api->max_pcie_generation, {"nvmlDeviceGetMaxPcieLinkGeneration"});
  binder.Bind(&api->max_pcie_width, {"nvmlDeviceGetMaxPcieLinkWidth"});
  binder.Bind(&api->pcie_replays, {"nvmlDeviceGetPcieReplayCounter"});
  binder.Bind(&api->nvlink_state, {"nvmlDeviceGetNvLinkState"});
  binder.Bind(&api->ecc_errors, {"nvmlDeviceGetTotalEccErrors"});
  binder.Bind(&api->remapped_rows, {"nvmlDeviceGetRemappedRows"});
  binder.Bind(&api->gpm_support, {"nvmlGpmQueryDeviceSupport"});
  binder.Bind(&api->gpm_sample_alloc, {"nvmlGpmSampleAlloc"});
  binder.Bind(&api->gpm_sample_free, {"nvmlGpmSampleFree"});
  binder.Bind(&api->gpm_sample_get, {"nvmlGpmSampleGet"});
  binder.Bind(&api->gpm_mig_sample_get, {"nvmlGpmMigSampleGet"});
  binder.Bind(&api->gpm_metrics_get, {"nvmlGpmMetricsGet"});
  binder.Bind(&api->process_utilization, {"nvmlDeviceGetProcessUtilization"});
  binder.Bind(&api->processes_utilization, {"nvmlDeviceGetProcessesUtilizationInfo"});
}

}  // namespace

void BindSymbols(void* library, Api* api, ChosenSymbols* chosen) {
  const Binder binder{.library = library, .chosen = chosen};
  BindSystem(binder, api);
  BindIdentity(binder, api);
  BindReadings(binder, api);
  BindParts(binder, api);
  BindProcesses(binder, api);
}

}  // namespace epochmeter::collect::nvml
