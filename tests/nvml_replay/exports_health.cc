// SPDX-License-Identifier: Apache-2.0
// Exported calls: ECC, remapped rows, retired pages.
#include "call.h"

namespace nvml_replay {
namespace {

const char* EccKey(uint32_t error, uint32_t counter) {
  if (error > kNvmlErrorUncorrected || counter > kNvmlEccAggregate) return nullptr;
  if (error == kNvmlErrorCorrected) {
    return counter == kNvmlEccVolatile ? "ecc_corrected_volatile" : "ecc_corrected_aggregate";
  }
  return counter == kNvmlEccVolatile ? "ecc_uncorrected_volatile" : "ecc_uncorrected_aggregate";
}

NvmlReturn EccErrors(std::string_view function, NvmlDevice device, uint32_t error, uint32_t counter,
                     uint64_t* out) {
  const Call call(function, device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  const char* key = EccKey(error, counter);
  if (key == nullptr) return kNvmlInvalidArgument;
  return call.U64Or("ecc_mode", 1) == 0 ? kNvmlNotSupported : call.Put(key, out);
}

// Shows as many pages as were counted, at addresses of its own.
NvmlReturn RetiredPages(std::string_view function, NvmlDevice device, uint32_t cause,
                        uint32_t* count, uint64_t* addresses) {
  const Call call(function, device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (count == nullptr || cause > kNvmlRetiredDoubleBit) return kNvmlInvalidArgument;
  uint32_t pages = 0;
  const NvmlReturn rc =
      call.Put(cause == kNvmlRetiredSingleBit ? "retired_pages_sbe" : "retired_pages_dbe", &pages);
  if (rc != kNvmlSuccess) return rc;
  const uint32_t room = *count;
  *count = pages;
  if (pages == 0) return kNvmlSuccess;
  if (room < pages || addresses == nullptr) return kNvmlInsufficientSize;
  for (uint32_t i = 0; i < pages; ++i) addresses[i] = (i + 1) * 0x10000ULL;
  return kNvmlSuccess;
}

}  // namespace
}  // namespace nvml_replay

using nvml_replay::Call;
using nvml_replay::Takes;

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetEccMode(NvmlDevice device, uint32_t* current,
                                                  uint32_t* pending) {
  const Call call("nvmlDeviceGetEccMode", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  const NvmlReturn rc = call.Put("ecc_mode", current);
  if (rc != kNvmlSuccess) return rc;
  if (pending == nullptr) return kNvmlInvalidArgument;
  *pending = static_cast<uint32_t>(call.U64Or("ecc_pending", *current));
  return kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetTotalEccErrors(NvmlDevice device, uint32_t error,
                                                         uint32_t counter, uint64_t* count) {
  return nvml_replay::EccErrors("nvmlDeviceGetTotalEccErrors", device, error, counter, count);
}

// All errors are in device memory (location 2).
EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetMemoryErrorCounter(NvmlDevice device, uint32_t error,
                                                             uint32_t counter, uint32_t location,
                                                             uint64_t* count) {
  constexpr const char* kName = "nvmlDeviceGetMemoryErrorCounter";
  const NvmlReturn rc = nvml_replay::EccErrors(kName, device, error, counter, count);
  if (rc == kNvmlSuccess && location != 2) *count = 0;
  return rc;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetRemappedRows(NvmlDevice device, uint32_t* corrected,
                                                       uint32_t* uncorrected, uint32_t* pending,
                                                       uint32_t* failure) {
  const Call call("nvmlDeviceGetRemappedRows", device, Takes::kGpuWithoutMig);
  NvmlReturn rc = call.rc();
  if (rc == kNvmlSuccess) rc = call.Put("remapped_corrected", corrected);
  if (rc == kNvmlSuccess) rc = call.Put("remapped_uncorrected", uncorrected);
  if (rc == kNvmlSuccess) rc = call.Put("remapped_pending", pending);
  if (rc == kNvmlSuccess) rc = call.Put("remapped_failure", failure);
  return rc;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetRetiredPages(NvmlDevice device, uint32_t cause,
                                                       uint32_t* count, uint64_t* addresses) {
  return nvml_replay::RetiredPages("nvmlDeviceGetRetiredPages", device, cause, count, addresses);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetRetiredPages_v2(NvmlDevice device, uint32_t cause,
                                                          uint32_t* count, uint64_t* addresses,
                                                          uint64_t* stamps) {
  constexpr const char* kName = "nvmlDeviceGetRetiredPages_v2";
  const NvmlReturn rc = nvml_replay::RetiredPages(kName, device, cause, count, addresses);
  for (uint32_t i = 0; rc == kNvmlSuccess && stamps != nullptr && i < *count; ++i) stamps[i] = 0;
  return rc;
}

EPM_REPLAY_U32(nvmlDeviceGetRetiredPagesPendingStatus, "retired_pages_pending")
