// SPDX-License-Identifier: Apache-2.0
// The checks that every exported call goes through.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "player.h"

#define EPM_REPLAY_EXPORT extern "C" __attribute__((visibility("default")))

namespace nvml_replay {

// Which kinds of handle a call takes. A call about whole GPUs is NOT_SUPPORTED for an instance;
// one that MIG mode takes away is NOT_SUPPORTED for the GPU too while the mode is on.
enum class Takes : uint8_t { kGpu, kGpuWithoutMig, kBoth };

// One NVML call: takes the library's lock, checks that NVML is initialised and the handle valid,
// spends the latency, applies faults. Use: `Call call("nvmlX", device); if (call.rc()) return
// call.rc();`.
class Call {
 public:
  explicit Call(std::string_view function);
  Call(std::string_view function, NvmlDevice device, Takes takes = Takes::kGpu);
  // About a device that has no handle yet.
  Call(std::string_view function, Unit unit);
  NvmlReturn rc() const { return rc_; }
  Unit unit() const { return unit_; }
  Player& player() const { return player_; }
  const DeviceModel& model() const { return player_.model(unit_); }

  Reading Read(std::string_view key) const { return player_.Read(unit_, key); }
  // The value now as an unsigned integer, or `fallback` when the device shows none; saturates, so
  // that scripts can show 2^64-1.
  uint64_t U64Or(std::string_view key, uint64_t fallback) const;
  // Writes the value now to *out; the code a driver gives when it has none or out is null.
  NvmlReturn Put(std::string_view key, uint32_t* out) const;
  NvmlReturn Put(std::string_view key, uint64_t* out) const;
  NvmlReturn Put(std::string_view key, int32_t* out) const;
  // Copies with the terminating zero; the code a driver gives for a null or too small buffer.
  NvmlReturn CopyText(const std::string& text, char* out, uint32_t size) const;

 private:
  void Check(std::string_view function, int device);

  Player& player_;
  std::lock_guard<std::recursive_mutex> lock_;
  NvmlReturn rc_ = kNvmlSuccess;
  Unit unit_;
};

// A whole call that writes one value.
template <typename Out>
NvmlReturn PutNamed(std::string_view function, NvmlDevice device, std::string_view key, Out* out,
                    Takes takes = Takes::kGpu) {
  const Call call(function, device, takes);
  return call.rc() != kNvmlSuccess ? call.rc() : call.Put(key, out);
}

// Defines an exported call that writes the value of one key: about a whole GPU, or (_BOTH) about an
// instance too.
#define EPM_REPLAY_PUT(function, type, key, takes)                      \
  EPM_REPLAY_EXPORT NvmlReturn function(NvmlDevice device, type* out) { \
    return nvml_replay::PutNamed(#function, device, key, out, takes);   \
  }
#define EPM_REPLAY_U32(function, key) \
  EPM_REPLAY_PUT(function, uint32_t, key, nvml_replay::Takes::kGpu)
#define EPM_REPLAY_U32_BOTH(function, key) \
  EPM_REPLAY_PUT(function, uint32_t, key, nvml_replay::Takes::kBoth)
#define EPM_REPLAY_U64(function, key) \
  EPM_REPLAY_PUT(function, uint64_t, key, nvml_replay::Takes::kGpu)

// "key@part", the key of one fan, link or clock domain.
std::string Part(std::string_view key, uint32_t part);

}  // namespace nvml_replay
