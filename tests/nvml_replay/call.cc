// SPDX-License-Identifier: Apache-2.0
#include "call.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace nvml_replay {

Call::Call(std::string_view function) : player_(Player::Get()), lock_(player_.mutex()) {
  Check(function, -1);
}

Call::Call(std::string_view function, NvmlDevice device, Takes takes)
    : player_(Player::Get()), lock_(player_.mutex()) {
  const NvmlReturn state =
      player_.initialised() ? player_.Resolve(device, &unit_) : kNvmlUninitialized;
  const bool known = state != kNvmlInvalidArgument && state != kNvmlUninitialized;
  Check(function, known ? static_cast<int>(unit_.device) : -1);
  if (rc_ == kNvmlSuccess) rc_ = state;
  if (rc_ != kNvmlSuccess || takes == Takes::kBoth) return;
  const bool without_mig = takes == Takes::kGpuWithoutMig;
  if (unit_.instance >= 0 || (without_mig && player_.MigEnabled(unit_.device))) {
    rc_ = kNvmlNotSupported;
  }
}

Call::Call(std::string_view function, Unit unit)
    : player_(Player::Get()), lock_(player_.mutex()), unit_(unit) {
  Check(function, static_cast<int>(unit.device));
  if (rc_ == kNvmlSuccess) rc_ = player_.StateOf(unit);
}

void Call::Check(std::string_view function, int device) {
  if (!player_.initialised()) {
    rc_ = kNvmlUninitialized;
    return;
  }
  rc_ = player_.Enter(function, device);
}

uint64_t Call::U64Or(std::string_view key, uint64_t fallback) const {
  const Reading reading = Read(key);
  return reading.code != 0 || std::isnan(reading.value) ? fallback : ToU64(reading.value);
}

NvmlReturn Call::Put(std::string_view key, uint64_t* out) const {
  if (out == nullptr) return kNvmlInvalidArgument;
  const Reading reading = Read(key);
  if (reading.code != 0) return reading.code;
  if (std::isnan(reading.value)) return kNvmlNotSupported;
  *out = ToU64(reading.value);
  return kNvmlSuccess;
}

NvmlReturn Call::Put(std::string_view key, uint32_t* out) const {
  uint64_t wide = 0;
  const NvmlReturn rc = out == nullptr ? kNvmlInvalidArgument : Put(key, &wide);
  if (rc == kNvmlSuccess) *out = static_cast<uint32_t>(std::min<uint64_t>(wide, UINT32_MAX));
  return rc;
}

NvmlReturn Call::Put(std::string_view key, int32_t* out) const {
  if (out == nullptr) return kNvmlInvalidArgument;
  const Reading reading = Read(key);
  if (reading.code != 0) return reading.code;
  const double bounded = std::clamp<double>(reading.value, INT32_MIN, INT32_MAX);
  *out = static_cast<int32_t>(bounded);
  return kNvmlSuccess;
}

NvmlReturn Call::CopyText(const std::string& text, char* out, uint32_t size) const {
  if (out == nullptr) return kNvmlInvalidArgument;
  if (player_.corrupt()) {
    std::memset(out, 'X', size);
    return kNvmlSuccess;
  }
  if (size <= text.size()) return kNvmlInsufficientSize;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return kNvmlSuccess;
}

std::string Part(std::string_view key, uint32_t part) {
  return std::string(key) + "@" + std::to_string(part);
}

}  // namespace nvml_replay
