// SPDX-License-Identifier: Apache-2.0
// State of the replay library in one process: the scenario, the play clock, which devices there
// are now, and their handles. All of it is guarded by mutex().
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collect/nvml/abi.h"
#include "scenario.h"

namespace nvml_replay {

// A device, or one MIG instance of it.
struct Unit {
  size_t device = 0;
  int instance = -1;
  bool operator==(const Unit& other) const = default;
};

class Player {
 public:
  // The one player of the process; it lives as long as the library is loaded.
  static Player& Get();

  NvmlReturn Init();
  NvmlReturn Shutdown();
  bool initialised() const { return references_ > 0; }
  // Whether the fault of the call that runs is to be `corrupt`.
  bool corrupt() const { return corrupt_; }
  const Scenario& scenario() const { return scenario_; }
  std::recursive_mutex& mutex() { return mutex_; }
  double speed() const { return speed_; }

  // Play time now: 0 at T0, negative before it, not clamped at the end.
  int64_t PlayNs() const;
  // The clock of sample stamps now, in us.
  int64_t SampleClockMicros() const;

  // The devices that are enumerated now, in NVML's order.
  std::vector<size_t> Enumerated() const;
  // The valid handle of a unit; the same one until the device was lost and came back.
  NvmlDevice HandleOf(Unit unit);
  // What a handle stands for: kNvmlSuccess, or the code that calls with it answer. A stale handle
  // ends the process when the scenario says so.
  NvmlReturn Resolve(NvmlDevice handle, Unit* unit) const;
  // kNvmlSuccess, or why calls about the device fail now.
  NvmlReturn StateOf(Unit unit) const;
  const DeviceModel& model(Unit unit) const;

  // What the unit shows at a play time (clamped to the recording), value faults applied.
  Reading ReadAt(Unit unit, std::string_view key, int64_t play_ns) const;
  Reading Read(Unit unit, std::string_view key) const { return ReadAt(unit, key, PlayNs()); }
  bool HasKey(Unit unit, std::string_view key) const;
  // Mean of a GPM value over a window of play time, value faults applied.
  Reading GpmMean(Unit unit, std::string_view key, int64_t from_ns, int64_t to_ns) const;
  std::vector<ProcessEntry> Processes(Unit unit) const;
  bool MigEnabled(size_t device) const;

  // Once for each call, field of a batch and sample buffer: writes the log, spends the latency and
  // suffers the fault that hits, if any. Returns its code.
  NvmlReturn Enter(std::string_view function, int device);

 private:
  // Handles are addresses of slots, which stay where they are.
  struct Slot {
    Unit unit;
    int64_t epoch;
  };

  Player() = default;
  bool LoadOnce();
  void ReadSettings();
  void Log(std::string_view function, int device) const;
  void Spend(std::string_view function) const;
  std::optional<Fault> TakeFault(std::string_view function, int device);
  int64_t PresenceNs() const;
  int64_t EpochOf(size_t device) const;
  const Reading* FaultValue(size_t device, std::string_view key, int64_t play_ns) const;

  std::recursive_mutex mutex_;
  int references_ = 0;
  bool corrupt_ = false;
  bool loaded_ = false;
  std::string wish_;  // the environment that was loaded
  Scenario scenario_;
  std::deque<Slot> slots_;
  int64_t t0_ns_ = 0;
  int64_t init_play_ns_ = 0;
  int64_t inits_ = 0;
  double speed_ = 1.0;
  bool latency_ = false;
  std::string log_path_;
};

uint64_t ToU64(double value);

}  // namespace nvml_replay
