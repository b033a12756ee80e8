// SPDX-License-Identifier: Apache-2.0
// What `run` and `attach` were asked to do, and where the run's files and sockets are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/command.h"
#include "model/record.h"

namespace epochmeter::cli {

struct RunSettings {
  base::ClockAnchor began = base::ReadClockAnchor();  // of the run, whichever recorder describes it
  std::string run_id;    // "20260822T101530Z-train-3f9c1a": sortable, unique, no pid
  std::string run_path;  // the .emr file
  std::string socket_path;
  int64_t interval_ns = base::kNsPerSecond;
  // Of one core, for all processes of ours; infinite without a limit.
  double cpu_ratio = 0.005;
  int64_t print_ns = 0;    // 0: no live lines
  std::string print_path;  // where live lines also go; empty: nowhere
  bool hooks = true;
  bool capture_output = true;
  bool output_progress = true;  // epochs and steps are looked for in it
  bool gpu = true;
  bool all_gpus = false;  // record GPUs that are not the job's, too
  bool force = false;     // an existing run file is replaced
  bool quiet = false;
  bool json = false;     // what is said on stderr is one JSON object a line
  model::Labels labels;  // --tag k=v
  std::vector<std::string> command;
  // Of attach only, as the process itself has them: absent when they may not be read.
  bool attached = false;
  std::optional<std::string> training_environment;
  std::string training_folder;
  int64_t record_for_ns = 0;  // 0: until the training's end

  // Parts of cpu_ratio. Launcher and relay sleep while nothing happens.
  double sampler_cpu_ratio() const { return 0.7 * cpu_ratio; }
  double recorder_cpu_ratio() const { return gpu ? 0.3 * cpu_ratio : cpu_ratio; }
};

// EPOCHMETER=0|off|false|no and 1|on|true|yes; ENABLE_GPU_MONITOR likewise where EPOCHMETER is not
// set. Another word is an error that names these. Unset is on: who types `run` wants a recording.
base::Result<bool> RecordingSwitchedOn();

// Flags and environment into settings; makes the run's folder. An error means nothing was started.
base::Result<RunSettings> MakeRunSettings(const Arguments& arguments);

// "epochmeter-runs" below the working folder, or --dir / EPOCHMETER_DIR.
std::string RunsFolder(const Arguments& arguments);
// The private folder of sockets (0700): $XDG_RUNTIME_DIR/epochmeter, else <tmp>/epochmeter-<uid>.
// A folder that belongs to somebody else is refused.
base::Result<std::string> SocketFolder();

// A command line for display and storage: values after words like --token, KEY=... of secret
// names, credentials in URLs and the home folder are replaced.
std::vector<std::string> RedactCommand(const std::vector<std::string>& command);
// The variables that identify the run and its launcher (a fixed list), never the whole environment.
model::Labels IdentifyingEnvironment();
// The same of another process, from the text of its /proc/PID/environ.
model::Labels IdentifyingEnvironment(std::string_view environ_text);
std::string RedactHome(std::string text);

}  // namespace epochmeter::cli
