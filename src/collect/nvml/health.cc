// SPDX-License-Identifier: Apache-2.0
// Health of the device memory and what the driver asks for; slow tier. Rows are remapped from
// Ampere on, pages retired up to Volta. A virtual GPU that is asked for its rows floods the
// kernel log with errors: a device that refuses once is never asked again.
#include <array>

#include "collect/nvml/device_source.h"
#include "collect/nvml/nvml_sources.h"
#include "model/gpu_health_metrics.h"

namespace epochmeter::collect::nvml {
namespace {

namespace gpu = model::gpu;

enum MetricIndex : size_t { kFirstEcc = 0, kFirstRemap = 4, kFirstRetired = 8, kRecovery = 11 };
constexpr std::array kMetrics = {gpu::kEccCorrectedVolatile,  gpu::kEccUncorrectedVolatile,
                                 gpu::kEccCorrectedAggregate, gpu::kEccUncorrectedAggregate,
                                 gpu::kRemappedCorrected,     gpu::kRemappedUncorrected,
                                 gpu::kRemapPending,          gpu::kRemapFailed,
                                 gpu::kRetiredSingle,         gpu::kRetiredDouble,
                                 gpu::kRetiredPending,        gpu::kRecoveryAction};

enum Call : size_t { kEccField = 0, kRemap = 4, kRetiredField = 5, kRecoveryField = 8, kEccCall };
constexpr std::array<CallDef, 13> kCalls = {{
    {"NVML field 3 (ECC_SBE_VOL_TOTAL)", 0, 1},
    {"NVML field 4 (ECC_DBE_VOL_TOTAL)", 1, 1},
    {"NVML field 5 (ECC_SBE_AGG_TOTAL)", 2, 1},
    {"NVML field 6 (ECC_DBE_AGG_TOTAL)", 3, 1},
    {"nvmlDeviceGetRemappedRows", kFirstRemap, 4},
    {"NVML field 29 (RETIRED_SBE)", kFirstRetired, 1},
    {"NVML field 30 (RETIRED_DBE)", kFirstRetired + 1, 1},
    {"NVML field 31 (RETIRED_PENDING)", kFirstRetired + 2, 1},
    {"NVML field 230 (GPU_RECOVERY_ACTION)", kRecovery, 1},
    {"nvmlDeviceGetTotalEccErrors(corrected, volatile)", 0, 1},
    {"nvmlDeviceGetTotalEccErrors(uncorrected, volatile)", 1, 1},
    {"nvmlDeviceGetTotalEccErrors(corrected, aggregate)", 2, 1},
    {"nvmlDeviceGetTotalEccErrors(uncorrected, aggregate)", 3, 1},
}};
constexpr std::array<FieldRow, 4> kEccFields = {{
    {kNvmlFieldEccCorrectedVolatile, kEccField},
    {kNvmlFieldEccUncorrectedVolatile, kEccField + 1},
    {kNvmlFieldEccCorrectedAggregate, kEccField + 2},
    {kNvmlFieldEccUncorrectedAggregate, kEccField + 3},
}};
constexpr std::array<FieldRow, 3> kRetiredFields = {{
    {kNvmlFieldRetiredSingleBit, kRetiredField},
    {kNvmlFieldRetiredDoubleBit, kRetiredField + 1},
    {kNvmlFieldRetiredPending, kRetiredField + 2},
}};
constexpr std::array<FieldRow, 1> kRecoveryFields = {{{kNvmlFieldRecoveryAction, kRecoveryField}}};

constexpr double kMostErrors = 1e15;
constexpr double kMostRows = 1e6;

struct State {
  std::optional<bool> ecc_by_field;
  bool rows_refused = false;  // for the whole run
  void NewHandle() { ecc_by_field.reset(); }
};

void ReadEcc(const Reading& reading, State& state) {
  if (!state.ecc_by_field) {
    state.ecc_by_field = reading.api.ecc_errors == nullptr ||
                         ProbeField(reading, kNvmlFieldEccCorrectedVolatile) == kNvmlSuccess;
  }
  if (*state.ecc_by_field) {
    for (const FieldReading& field : ReadFields(reading, kEccFields)) {
      reading.PutInRange(kFirstEcc + field.row, field.value, 0, kMostErrors);
    }
    return;
  }
  constexpr std::array<std::array<uint32_t, 2>, 4> kWhich = {{
      {kNvmlErrorCorrected, kNvmlEccVolatile},
      {kNvmlErrorUncorrected, kNvmlEccVolatile},
      {kNvmlErrorCorrected, kNvmlEccAggregate},
      {kNvmlErrorUncorrected, kNvmlEccAggregate},
  }};
  for (size_t i = 0; i < kWhich.size(); ++i) {
    uint64_t errors = 0;
    const auto call = reading.api.ecc_errors;
    if (!reading.Try(kEccCall + i, call, kWhich[i][0], kWhich[i][1], &errors)) continue;
    reading.PutInRange(kFirstEcc + i, static_cast<double>(errors), 0, kMostErrors);
  }
}

void ReadRows(const Reading& reading, State& state) {
  const int64_t t_ns = reading.out.t_ns;
  if (state.rows_refused || !reading.group.Due(reading.device, kRemap, t_ns)) return;
  std::array<uint32_t, 4> values{};  // corrected, uncorrected, pending, failed
  const auto call = reading.api.remapped_rows;
  const NvmlReturn rc =
      call != nullptr ? call(reading.device.handle, &values[0], &values[1], &values[2], &values[3])
                      : NvmlReturn{kNvmlFunctionNotFound};
  if (!reading.group.Took(reading.device, kRemap, rc, t_ns)) {
    // A lost device refuses everything; that says nothing of its rows.
    state.rows_refused = !reading.device.lost && rc != kNvmlUninitialized;
    return;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    reading.PutInRange(kFirstRemap + i, values[i], 0, i < 2 ? kMostRows : 1);
  }
}

void Read(const Reading& reading, State& state) {
  ReadEcc(reading, state);
  ReadRows(reading, state);
  const bool retires =
      reading.device.architecture != 0 && reading.device.architecture <= kNvmlArchVolta;
  if (retires) {
    for (const FieldReading& field : ReadFields(reading, kRetiredFields)) {
      reading.PutInRange(kFirstRetired + field.row, field.value, 0, field.row < 2 ? kMostRows : 1);
    }
  }
  for (const FieldReading& field : ReadFields(reading, kRecoveryFields)) {
    constexpr double kMostActions = 255;  // later drivers add some
    reading.PutInRange(kRecovery, field.value, 0, kMostActions);
  }
}

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  return MakeStatefulSource<State>(context, kMetrics, kCalls, Tier::kSlow, &Read);
}

}  // namespace

const SourceDef kGpuHealth{.name = "gpu.health",
                           .summary = "memory errors, replaced rows and pages, recovery action",
                           .metrics = kMetrics,
                           .tier = Tier::kSlow,
                           .Make = &Make};

}  // namespace epochmeter::collect::nvml
