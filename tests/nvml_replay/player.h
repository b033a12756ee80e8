// SPDX-License-Identifier: Apache-2.0
// State of the replay library in one process: the scenario, the play clock, and the checks every
// exported call goes through.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collect/nvml/abi.h"
#include "scenario.h"

namespace nvml_replay {

class Player {
 public:
  // The one player of the process; it lives as long as the library is loaded.
  static Player& Get();

  NvmlReturn Init();
  NvmlReturn Shutdown();
  bool initialised() const { return references_ > 0; }
  const Scenario& scenario() const { return scenario_; }
  std::recursive_mutex& mutex() { return mutex_; }

  // Index of a handle, or nullopt for a pointer that is none of ours.
  std::optional<size_t> IndexOf(NvmlDevice device) const;
  NvmlDevice HandleOf(size_t index) const;
  const DeviceModel& model(size_t index) const { return scenario_.devices[index]; }

  // Play time now: 0 at T0, negative before it, not clamped at the end.
  int64_t PlayNs() const;
  // What the device shows at a play time (clamped to the recording), value faults applied.
  std::optional<double> ValueAt(size_t index, std::string_view key, int64_t play_ns) const;
  std::optional<double> Value(size_t index, std::string_view key) const;
  // Mean of a GPM value over a window of play time, value faults applied.
  std::optional<double> GpmMean(size_t index, std::string_view key, int64_t from_ns,
                                int64_t to_ns) const;
  std::vector<ProcessEntry> Processes(size_t index) const;
  double speed() const { return speed_; }

  // The fault that hits a call of this function, if any; counts it.
  std::optional<Fault> TakeFault(std::string_view function, int device);
  // Spends the measured cost of a call when EPOCHMETER_REPLAY_LATENCY asks for it.
  void Spend(std::string_view function) const;

 private:
  Player() = default;
  const double* FaultValue(size_t index, std::string_view key, int64_t play_ns) const;
  bool LoadOnce();

  std::recursive_mutex mutex_;
  int references_ = 0;
  bool loaded_ = false;
  std::string wish_;  // the environment that was loaded
  Scenario scenario_;
  std::vector<char> handle_slots_;
  int64_t t0_ns_ = 0;
  double speed_ = 1.0;
  bool latency_ = false;
};

// One NVML call: takes the library's lock, checks that NVML is initialised and the handle valid,
// spends the measured latency, applies faults. Use: `Call call("nvmlX", device); if (call.rc())
// return call.rc();`.
class Call {
 public:
  explicit Call(std::string_view function);
  Call(std::string_view function, NvmlDevice device);
  NvmlReturn rc() const { return rc_; }
  size_t index() const { return index_; }
  Player& player() const { return player_; }

  // The value now as an unsigned integer; saturates, so that scripts can show 2^64-1.
  std::optional<uint64_t> U64(std::string_view key) const;
  // Writes the value now to *out; the code a driver gives when it has none or out is null.
  NvmlReturn Put(std::string_view key, uint32_t* out) const;

 private:
  void Check(std::string_view function, int device);

  Player& player_;
  std::lock_guard<std::recursive_mutex> lock_;
  NvmlReturn rc_ = kNvmlSuccess;
  size_t index_ = 0;
};

uint64_t ToU64(double value);
int64_t WallMicros();

}  // namespace nvml_replay
