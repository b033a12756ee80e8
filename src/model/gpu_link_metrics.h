// SPDX-License-Identifier: Apache-2.0
// Metrics of a GPU's PCIe and NVLink connections that are not bytes (those are in
// gpu_activity_metrics.h).
#pragma once

#include "model/gpu_metrics.h"

namespace epochmeter::model::gpu {

consteval MetricDef PcieLink(std::string_view name, std::string_view field,
                             std::string_view prometheus, std::string_view help,
                             std::string_view source) {
  return Gauge(name, "", field, prometheus, "1", 1, help, source);
}
inline constexpr MetricDef kPcieGeneration =
    PcieLink("gpu.pcie.link.generation", "pcie_link_generation", "gpu_pcie_link_generation",
             "PCIe generation at which the link runs now; it falls on purpose when idle.",
             "nvmlDeviceGetCurrPcieLinkGeneration");
inline constexpr MetricDef kPcieWidth =
    PcieLink("gpu.pcie.link.width", "pcie_link_width", "gpu_pcie_link_width",
             "PCIe lanes that the link uses now.", "nvmlDeviceGetCurrPcieLinkWidth");
inline constexpr MetricDef kPcieMaxGeneration = PcieLink(
    "gpu.pcie.link.max_generation", "pcie_link_max_generation", "gpu_pcie_link_max_generation",
    "Highest PCIe generation of GPU and slot together.", "nvmlDeviceGetMaxPcieLinkGeneration");
inline constexpr MetricDef kPcieMaxWidth =
    PcieLink("gpu.pcie.link.max_width", "pcie_link_max_width", "gpu_pcie_link_max_width",
             "Most PCIe lanes of GPU and slot together.", "nvmlDeviceGetMaxPcieLinkWidth");

consteval MetricDef PcieErrors(std::string_view label, std::string_view field,
                               std::string_view help, std::string_view source) {
  return Counter("gpu.pcie.errors", label, field, "gpu_pcie_errors_total", "{error}", 1, help,
                 source);
}
inline constexpr MetricDef kPcieCorrectable =
    PcieErrors("kind=correctable", "pcie_correctable_errors",
               "PCIe errors that the link corrected.", "NVML field 173");
inline constexpr MetricDef kPcieNaks =
    PcieErrors("kind=nak_received", "pcie_naks_received",
               "PCIe packets that the other side refused.", "NVML field 174");
inline constexpr MetricDef kPcieBadTlp =
    PcieErrors("kind=bad_tlp", "pcie_bad_tlps", "Damaged PCIe transaction packets received.",
               "NVML field 176");
inline constexpr MetricDef kPcieBadDllp = PcieErrors(
    "kind=bad_dllp", "pcie_bad_dllps", "Damaged PCIe link packets received.", "NVML field 178");
inline constexpr MetricDef kPcieNonFatal =
    PcieErrors("kind=non_fatal", "pcie_non_fatal_errors", "PCIe errors that cost a transaction.",
               "NVML field 179");
inline constexpr MetricDef kPcieFatal = PcieErrors(
    "kind=fatal", "pcie_fatal_errors", "PCIe errors that cost the link.", "NVML field 180");

inline constexpr MetricDef kNvlinkLinks =
    Gauge("gpu.nvlink.links", "", "nvlink_links", "gpu_nvlink_links", "{link}", 1,
          "NVLinks of the GPU.", "NVML field 91");
inline constexpr MetricDef kNvlinkActive =
    Gauge("gpu.nvlink.active_links", "", "nvlink_active_links", "gpu_nvlink_active_links", "{link}",
          1, "NVLinks that are up.", "nvmlDeviceGetNvLinkState");
inline constexpr MetricDef kNvlinkSpeed =
    Gauge("gpu.nvlink.speed", "", "nvlink_speed_bytes_per_s", "gpu_nvlink_speed_bytes_per_second",
          "By/s", 1, "Speed of one NVLink in one direction.", "NVML field 90");

consteval MetricDef NvlinkErrors(std::string_view label, std::string_view field,
                                 std::string_view help, std::string_view source) {
  return Counter("gpu.nvlink.errors", label, field, "gpu_nvlink_errors_total", "{error}", 1, help,
                 source);
}
inline constexpr MetricDef kNvlinkCrcFlit =
    NvlinkErrors("kind=crc_flit", "nvlink_crc_flit_errors",
                 "Damaged NVLink flow-control units, all links.", "NVML field 38");
inline constexpr MetricDef kNvlinkCrcData = NvlinkErrors(
    "kind=crc_data", "nvlink_crc_data_errors", "Damaged NVLink data, all links.", "NVML field 45");
inline constexpr MetricDef kNvlinkReplay =
    NvlinkErrors("kind=replay", "nvlink_replay_errors", "NVLink packets sent again, all links.",
                 "NVML field 52");
inline constexpr MetricDef kNvlinkRecovery =
    NvlinkErrors("kind=recovery", "nvlink_recovery_errors",
                 "Times that an NVLink was brought up again, all links.", "NVML field 59");
inline constexpr MetricDef kNvlinkReceive5 =
    NvlinkErrors("kind=receive", "nvlink_receive_errors",
                 "Damaged packets received over NVLink 5, all links.", "NVML field 208");
inline constexpr MetricDef kNvlinkDiscards5 =
    NvlinkErrors("kind=discard", "nvlink_discards",
                 "Packets that NVLink 5 gave up sending, all links.", "NVML field 212");
inline constexpr MetricDef kNvlinkRecovered5 =
    NvlinkErrors("kind=link_recovered", "nvlink_link_recoveries",
                 "Times that NVLink 5 brought a link up again, all links.", "NVML field 213");
inline constexpr MetricDef kNvlinkLost5 = NvlinkErrors(
    "kind=link_lost", "nvlink_link_losses",
    "Times that NVLink 5 could not bring a link up again, all links.", "NVML field 214");

}  // namespace epochmeter::model::gpu
