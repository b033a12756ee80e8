// SPDX-License-Identifier: Apache-2.0
// What the replay library plays: devices with values over time, and injected faults. Loaded once
// at the first nvmlInit from a recording folder or a script file (README.md describes both).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "track.h"

namespace nvml_replay {

struct Span {
  int64_t from_ns = 0;
  int64_t to_ns = INT64_MAX;
  bool Has(int64_t t_ns) const { return t_ns >= from_ns && t_ns < to_ns; }
};

enum class ProcessKind : uint8_t { kCompute, kGraphics, kMps };

struct ProcessEntry {
  uint32_t pid = 0;
  uint64_t used_bytes = 0;
  Track used;  // in place of used_bytes, when it has points
  uint64_t protected_bytes = 0;
  ProcessKind kind = ProcessKind::kCompute;
  int gpu_instance = -1;
  int compute_instance = -1;
  Span alive{INT64_MIN, INT64_MAX};
};

// One process in the driver's utilisation samples. The stamp is the newest multiple of the period,
// unless the script freezes it.
struct UtilizationRow {
  uint32_t pid = 0;
  std::map<std::string, Track, std::less<>> percent;  // sm, mem, enc, dec, jpg, ofa
  std::optional<int64_t> stamp_ns;                    // play time; a row that never gets newer
  Span alive{INT64_MIN, INT64_MAX};
};

struct UtilizationModel {
  bool supported = false;
  std::vector<UtilizationRow> rows;
  int64_t period_ns = 166666667;
  uint32_t capacity = 72;          // smaller buffers get INSUFFICIENT_SIZE
  uint32_t zero_rows = 0;          // rows of zeros in front of the real ones
  bool ignores_last_seen = false;  // old rows come again
};

// While it lasts every call about the device answers `code`; the device stays counted.
struct LostSpan {
  Span when;
  int32_t code = 15;
  bool new_handle = true;  // handles from before are stale when the device is back
};

// A GPU, or a MIG instance of one.
struct DeviceModel {
  std::string name = "NVIDIA H200";
  std::string uuid, bus_id, serial;
  uint32_t bus = 0;
  uint32_t pci_device_id = 0x233510de;
  // Keyed as in the recordings: util_gpu, power_mw, gpm.sm_util, ... No track: NOT_SUPPORTED.
  std::map<std::string, Track, std::less<>> tracks;
  std::vector<std::pair<int64_t, std::vector<ProcessEntry>>> processes;
  UtilizationModel utilization;
  std::vector<Span> absent;  // not enumerated; calls with an old handle answer GPU_IS_LOST
  std::vector<LostSpan> lost;
  bool permitted = true;  // false: counted, but no handle is given

  // MIG. The vector is what the index of a MIG handle counts over; a hole has no handle.
  std::vector<DeviceModel> instances;
  uint32_t max_instances = 0;
  bool hole = false;
  int gpu_instance = -1;
  int compute_instance = -1;  // -1: a GPU instance without compute instance, so without handle
  std::string profile;        // "1g.18gb"
};

// Active from at_ns for for_ns of play time, after `after` calls that it lets pass, at most `times`
// calls. Effects come in the order garbage, crash, hang, return code; `values` replaces what the
// device would show.
struct Fault {
  std::string function = "*";  // a trailing * stands for any ending
  int device = -1;             // -1: every device
  int64_t at_ns = 0;
  int64_t for_ns = INT64_MAX;
  int64_t after = 0;
  int64_t times = INT64_MAX;
  int32_t return_code = 0;
  double hang_s = 0;     // infinite: until the fault's time is over
  std::string crash;     // see misbehave.h; empty: none
  int garbage = 0;       // packets, see misbehave.h
  bool corrupt = false;  // texts without an end, lists with too high a count

  bool Acts() const {
    return !crash.empty() || hang_s > 0 || return_code != 0 || garbage > 0 || corrupt;
  }
  std::map<std::string, Reading, std::less<>> values;
};

// An XID or another event of a device; or of the system (driver bound to or unbound from a GPU).
struct EventModel {
  int64_t at_ns = 0;
  size_t device = 0;
  uint64_t type = 0;
  uint64_t data = 0;
  int gpu_instance = -1;
  int compute_instance = -1;
};

// The clock that sample buffers and process utilisation are stamped with.
enum class SampleClock : uint8_t { kWall, kMonotonic, kBoottime };
enum class StaleHandle : uint8_t { kLost, kInvalid, kCrash };

struct Scenario {
  std::string driver_version = "580.159.04";
  std::string nvml_version = "13.580.159.04";
  std::vector<DeviceModel> devices;
  std::vector<Fault> faults;
  std::vector<EventModel> events;         // in time order
  std::vector<EventModel> system_events;  // in time order
  int64_t last_ns = INT64_MAX;            // the end of the recording; values hold from there on
  int64_t gpm_nan_under_ns = 0;           // GPM windows shorter than this come back as NaN
  StaleHandle stale_handle = StaleHandle::kLost;
  bool new_handles_on_init = false;  // handles from before a shutdown are stale
  bool enumerate_at_init = false;    // a device that appears is seen only after the next init
  SampleClock sample_clock = SampleClock::kWall;
  int64_t sample_clock_offset_us = 0;
  std::map<std::string, int64_t, std::less<>> latency_us;  // what a call costs, by function
};

// On failure `error` says which file, which key or line and why; the scenario is then unusable.
std::optional<Scenario> LoadScenario(const std::string& path, std::string* error);

// The two kinds of source; they fill *scenario and give the name that identities derive from.
bool LoadRecording(const std::string& folder, Scenario* scenario, std::string* error);
bool LoadScript(const std::string& path, Scenario* scenario, std::string* name, std::string* error);

}  // namespace nvml_replay
