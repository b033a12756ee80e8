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

namespace nvml_replay {

// A value over play time (ns since the first sample). Steps hold until the next point; per_s adds
// a slope, for counters.
struct Track {
  std::vector<std::pair<int64_t, double>> points;
  double per_s = 0;

  // Before the first point its value, after the last point that one. Empty track: nullopt.
  std::optional<double> At(int64_t play_ns) const;
  // Mean of the points in (from, to]; the value in force at `to` when there is none.
  std::optional<double> MeanBetween(int64_t from_ns, int64_t to_ns) const;
};

struct ProcessEntry {
  uint32_t pid;
  uint64_t used_bytes;
};

struct DeviceModel {
  std::string name = "NVIDIA H200";
  std::string uuid, bus_id, serial;
  uint32_t bus = 0;
  // Keyed as in the recordings: util_gpu, power_mw, gpm.sm_util, ... No track: NOT_SUPPORTED.
  std::map<std::string, Track, std::less<>> tracks;
  std::vector<std::pair<int64_t, std::vector<ProcessEntry>>> processes;
};

// Active from at_ns for for_ns of play time, at most `times` calls. Exactly one effect is used per
// call, in the order crash, hang, return code; `values` replaces what the device would show.
struct Fault {
  std::string function = "*";
  int device = -1;  // -1: every device
  int64_t at_ns = 0;
  int64_t for_ns = INT64_MAX;
  int64_t times = INT64_MAX;
  int32_t return_code = 0;
  double hang_s = 0;
  bool crash = false;
  std::map<std::string, double, std::less<>> values;
};

struct Scenario {
  std::string driver_version = "580.159.04";
  std::string nvml_version = "13.580.159.04";
  std::vector<DeviceModel> devices;
  std::vector<Fault> faults;
  int64_t last_ns = INT64_MAX;   // the end of the recording; values hold from there on
  int64_t gpm_nan_under_ns = 0;  // GPM windows shorter than this come back as NaN
};

// On failure `error` says which file, which line and why; the scenario is then unusable.
std::optional<Scenario> LoadScenario(const std::string& path, std::string* error);

}  // namespace nvml_replay
