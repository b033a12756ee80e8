// SPDX-License-Identifier: Apache-2.0
#include "keys.h"

#include <algorithm>
#include <array>

#include "collect/nvml/abi_codes.h"
#include "fields.h"

namespace nvml_replay {
namespace {

// Keys of calls; those of fields and GPM metrics stand in their own tables.
constexpr std::array kKeys = {"accounting_mode",
                              "addressing_mode",
                              "architecture",
                              "bar1_total",
                              "bar1_used",
                              "board_id",
                              "brand",
                              "clocks_event_reasons",
                              "clocks_supported_reasons",
                              "compute_capability",
                              "compute_mode",
                              "decoder_util",
                              "ecc_corrected_volatile",
                              "encoder_util",
                              "event_types",
                              "fan_percent",
                              "fan_rpm",
                              "fans",
                              "gpm_supported",
                              "jpg_util",
                              "margin_temperature_c",
                              "max_graphics_mhz",
                              "graphics_mhz",
                              "max_mem_mhz",
                              "max_sm_mhz",
                              "max_video_mhz",
                              "mem_free",
                              "mem_mhz",
                              "mem_used",
                              "memory_reserved",
                              "memory_total",
                              "mig_mode",
                              "mig_pending",
                              "minor",
                              "module_id",
                              "multi_gpu_board",
                              "nvlink_active",
                              "numa_node",
                              "ofa_util",
                              "pcie_gen",
                              "pcie_gen_max",
                              "pcie_gpu_gen_max",
                              "pcie_width",
                              "pcie_width_max",
                              "pcie_max_speed_mbps",
                              "persistence_mode",
                              "power_management_limit_mw",
                              "power_mw",
                              "process_memory",
                              "pstate",
                              "remap_active_corrected",
                              "remap_active_uncorrected",
                              "remap_inactive_corrected",
                              "remap_inactive_uncorrected",
                              "sampling_period_us",
                              "sm_mhz",
                              "temp_c",
                              "temp_mem_max_c",
                              "temp_gpu_max_c",
                              "temp_shutdown_c",
                              "temp_slowdown_c",
                              "util_gpu",
                              "util_mem",
                              "video_mhz",
                              "violation_power_ns",
                              "violation_thermal_ns",
                              "violation_sync_boost_ns",
                              "violation_board_ns",
                              "violation_lowutil_ns",
                              "violation_reliability_ns",
                              "violation_app_clocks_ns",
                              "violation_base_clocks_ns",
                              "virtualization_mode",
                              "attribute_sm_count",
                              "attribute_gi_slices",
                              "attribute_ci_slices",
                              "attribute_memory_mib",
                              "attribute_copy_engines",
                              "attribute_decoders",
                              "attribute_encoders",
                              "attribute_jpegs",
                              "attribute_ofas",
                              "index"};

constexpr std::array<GpmName, 22> kGpmNames = {{
    {kNvmlGpmGraphicsUtil, "gpm.graphics_util", "GRAPHICS_UTIL", "%"},
    {kNvmlGpmSmUtil, "gpm.sm_util", "SM_UTIL", "%"},
    {kNvmlGpmSmOccupancy, "gpm.sm_occupancy", "SM_OCCUPANCY", "%"},
    {kNvmlGpmIntegerUtil, "gpm.integer_util", "INTEGER_UTIL", "%"},
    {kNvmlGpmAnyTensorUtil, "gpm.any_tensor_util", "ANY_TENSOR_UTIL", "%"},
    {6, "gpm.dfma_util", "DFMA_TENSOR_UTIL", "%"},
    {kNvmlGpmHmmaTensorUtil, "gpm.hmma_util", "HMMA_TENSOR_UTIL", "%"},
    {8, "gpm.dmma_util", "DMMA_TENSOR_UTIL", "%"},
    {9, "gpm.imma_util", "IMMA_TENSOR_UTIL", "%"},
    {kNvmlGpmDramBwUtil, "gpm.dram_bw_util", "DRAM_BW_UTIL", "%"},
    {kNvmlGpmFp64Util, "gpm.fp64_util", "FP64_UTIL", "%"},
    {kNvmlGpmFp32Util, "gpm.fp32_util", "FP32_UTIL", "%"},
    {kNvmlGpmFp16Util, "gpm.fp16_util", "FP16_UTIL", "%"},
    {kNvmlGpmPcieTx, "gpm.pcie_tx_mib_s", "PCIE_TX_PER_SEC", "MiB/s"},
    {kNvmlGpmPcieRx, "gpm.pcie_rx_mib_s", "PCIE_RX_PER_SEC", "MiB/s"},
    {30, "gpm.nvdec_util", "NVDEC_0_UTIL", "%"},
    {40, "gpm.nvjpg_util", "NVJPG_0_UTIL", "%"},
    {50, "gpm.nvofa_util", "NVOFA_0_UTIL", "%"},
    {kNvmlGpmNvlinkRx, "gpm.nvlink_rx_mib_s", "NVLINK_TOTAL_RX_PER_SEC", "MiB/s"},
    {kNvmlGpmNvlinkTx, "gpm.nvlink_tx_mib_s", "NVLINK_TOTAL_TX_PER_SEC", "MiB/s"},
    {100, "gpm.c2c_tx_mib_s", "C2C_TOTAL_TX_PER_SEC", "MiB/s"},
    {101, "gpm.c2c_rx_mib_s", "C2C_TOTAL_RX_PER_SEC", "MiB/s"},
}};

bool NumberFollows(std::string_view key, std::string_view prefix) {
  if (key.substr(0, prefix.size()) != prefix || key.size() == prefix.size()) return false;
  const std::string_view digits = key.substr(prefix.size());
  return digits.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

bool KnownKey(std::string_view key) {
  const std::string_view name = key.substr(0, key.find('@'));
  if (NumberFollows(name, "field:") || NumberFollows(name, "gpm:")) return true;
  const auto same = [&](const auto& row) { return name == row.key; };
  return std::find(kKeys.begin(), kKeys.end(), name) != kKeys.end() ||
         std::any_of(Fields().begin(), Fields().end(), same) ||
         std::any_of(kGpmNames.begin(), kGpmNames.end(), same);
}

std::string UnknownKeyHelp() {
  std::string known;
  for (const char* key : kKeys) known += std::string(" ") + key;
  for (const Field& field : Fields()) known += std::string(" ") + field.key;
  for (const GpmName& row : kGpmNames) known += std::string(" ") + row.key;
  return "unknown value; known are field:ID gpm:ID" + known;
}

const GpmName* FindGpm(uint32_t id) {
  const auto it = std::find_if(kGpmNames.begin(), kGpmNames.end(),
                               [&](const GpmName& row) { return row.id == id; });
  return it == kGpmNames.end() ? nullptr : &*it;
}

}  // namespace nvml_replay
