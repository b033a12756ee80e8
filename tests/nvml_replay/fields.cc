// SPDX-License-Identifier: Apache-2.0
#include "fields.h"

#include <algorithm>

#include "collect/nvml/abi_codes.h"

namespace nvml_replay {
namespace {

constexpr uint32_t kUint = kNvmlValueUint;
constexpr uint32_t kU64 = kNvmlValueUlonglong;
constexpr uint32_t kInt = kNvmlValueSignedInt;
constexpr auto kLink = FieldScope::kLink;
constexpr auto kSum = FieldScope::kLinkSum;
constexpr auto kPower = FieldScope::kPower;

constexpr Field kFields[] = {
    {1, "ecc_mode", kUint, 470},
    {2, "ecc_pending", kUint, 470},
    {3, "ecc_corrected_volatile", kU64, 470},
    {4, "ecc_uncorrected_volatile", kU64, 470},
    {5, "ecc_corrected_aggregate", kU64, 470},
    {6, "ecc_uncorrected_aggregate", kU64, 470},
    {29, "retired_pages_sbe", kU64, 470},
    {30, "retired_pages_dbe", kU64, 470},
    {31, "retired_pages_pending", kUint, 470},
    {38, "nvlink_crc_flit_errors", kU64, 470},
    {45, "nvlink_crc_data_errors", kU64, 470},
    {52, "nvlink_replay_errors", kU64, 470},
    {59, "nvlink_recovery_errors", kU64, 470},
    {74, "perf_policy_power_ns", kU64, 470},
    {75, "perf_policy_thermal_ns", kU64, 470},
    {76, "perf_policy_sync_boost_ns", kU64, 470},
    {77, "perf_policy_board_ns", kU64, 470},
    {78, "perf_policy_lowutil_ns", kU64, 470},
    {79, "perf_policy_reliability_ns", kU64, 470},
    {80, "perf_policy_app_clocks_ns", kU64, 470},
    {81, "perf_policy_base_clocks_ns", kU64, 470},
    {82, "memory_temp_c", kUint, 470},
    {83, "energy_mj", kU64, 470},
    {90, "nvlink_speed_mbps", kUint, 470},
    {91, "nvlink_links", kUint, 470},
    {94, "pcie_replay", kUint, 470},
    {95, "pcie_replay_rollover", kUint, 470},
    {138, "nvlink_tx_kib", kU64, 470, kSum},
    {139, "nvlink_rx_kib", kU64, 470, kSum},
    {140, "nvlink_raw_tx_kib", kU64, 470, kSum},
    {141, "nvlink_raw_rx_kib", kU64, 470, kSum},
    {142, "remapped_corrected", kUint, 470},
    {143, "remapped_uncorrected", kUint, 470},
    {144, "remapped_pending", kUint, 470},
    {145, "remapped_failure", kUint, 470},
    {161, "nvlink_error_replay", kU64, 510, kSum},
    {162, "nvlink_error_recovery", kU64, 510, kSum},
    {163, "nvlink_error_crc", kU64, 510, kSum},
    {164, "nvlink_link_speed_mbps", kUint, 510, kLink},
    {165, "nvlink_state", kUint, 510, kLink},
    {166, "nvlink_version", kUint, 510, kLink},
    {169, "pcie_l0_to_recovery", kUint, 525},
    {170, "c2c_links", kUint, 525},
    {173, "pcie_correctable_errors", kUint, 535},
    {174, "pcie_naks_received", kUint, 535},
    {175, "pcie_receiver_errors", kUint, 535},
    {176, "pcie_bad_tlp", kUint, 535},
    {177, "pcie_naks_sent", kUint, 535},
    {178, "pcie_bad_dllp", kUint, 535},
    {179, "pcie_nonfatal_errors", kUint, 535},
    {180, "pcie_fatal_errors", kUint, 535},
    {181, "pcie_unsupported_requests", kUint, 535},
    {182, "pcie_lcrc_errors", kUint, 535},
    {183, "pcie_lane_errors", kUint, 535},
    {185, "power_average_mw", kUint, 535, kPower},
    {186, "power_instant_mw", kUint, 535, kPower},
    {187, "power_min_limit_mw", kUint, 535, kPower},
    {188, "power_max_limit_mw", kUint, 535, kPower},
    {189, "power_default_limit_mw", kUint, 535, kPower},
    {190, "power_limit_mw", kUint, 535, kPower},
    {191, "energy_mj", kU64, 535},
    {192, "power_requested_limit_mw", kUint, 535, kPower},
    {193, "tlimit_shutdown_c", kInt, 535},
    {194, "tlimit_slowdown_c", kInt, 535},
    {195, "tlimit_memory_max_c", kInt, 535},
    {196, "tlimit_gpu_max_c", kInt, 535},
    {197, "pcie_tx_bytes", kU64, 555},
    {198, "pcie_rx_bytes", kU64, 555},
    {201, "nvlink5_tx_packets", kU64, 560, kSum},
    {202, "nvlink5_tx_bytes", kU64, 560, kSum},
    {203, "nvlink5_rx_packets", kU64, 560, kSum},
    {204, "nvlink5_rx_bytes", kU64, 560, kSum},
    {206, "nvlink5_malformed_packets", kU64, 560, kSum},
    {207, "nvlink5_buffer_overruns", kU64, 560, kSum},
    {208, "nvlink5_rx_errors", kU64, 560, kSum},
    {209, "nvlink5_rx_remote_errors", kU64, 560, kSum},
    {210, "nvlink5_rx_general_errors", kU64, 560, kSum},
    {211, "nvlink5_integrity_errors", kU64, 560, kSum},
    {212, "nvlink5_tx_discards", kU64, 560, kSum},
    {213, "nvlink5_recoveries", kU64, 560, kSum},
    {214, "nvlink5_failed_recoveries", kU64, 560, kSum},
    {215, "nvlink5_recovery_events", kU64, 560, kSum},
    {230, "recovery_action", kUint, 560},
};

}  // namespace

std::span<const Field> Fields() { return kFields; }

const Field* FindField(uint32_t id) {
  const std::span<const Field> fields = Fields();
  const auto it =
      std::lower_bound(fields.begin(), fields.end(), id,
                       [](const Field& field, uint32_t wanted) { return field.id < wanted; });
  return it == fields.end() || it->id != id ? nullptr : &*it;
}

}  // namespace nvml_replay
