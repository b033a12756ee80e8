// SPDX-License-Identifier: Apache-2.0
// One sampler process as its parent sees it: how it is started and how it ended. Nothing waits: a
// process that hangs in the driver dies when the driver lets it. One thread.
#pragma once

#include <sys/types.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "cli/helper_output.h"

namespace epochmeter::cli {

class SamplerChild {
 public:
  // What `internal-sampler` is to do.
  struct Task {
    int64_t interval_ns = 0;
    int32_t training_pid = 0;
    bool all_gpus = false;
    double cpu_ratio = std::numeric_limits<double>::infinity();  // of a core, at most
  };

  SamplerChild() = default;
  SamplerChild(const SamplerChild&) = delete;
  SamplerChild& operator=(const SamplerChild&) = delete;
  ~SamplerChild() { Kill(); }

  // False when there is no process or descriptor to be had.
  bool Start(const Task& task);
  bool running() const { return pid_ > 0; }
  // One that was killed and that the kernel has not let go of: a second one would wait for the same
  // lock of the driver.
  bool dying() const { return dying_pid_ > 0; }
  // To the process; -1 after Kill.
  int channel() const { return channel_.get(); }
  // What it printed, to be told once; see HelperOutput.
  std::string TakeOutput(int64_t now_ns, bool ended) { return output_.Take(now_ns, ended); }
  // The wait status of one that has ended by itself; nothing while it runs.
  std::optional<int> Ended();
  void Kill();
  // Looks whether a dying one is gone.
  void ReapDying();

 private:
  pid_t pid_ = -1;
  pid_t dying_pid_ = -1;
  base::UniqueFd channel_;
  HelperOutput output_;
};

// "ended by signal 11 (Segmentation fault)", "ended with exit code 3".
std::string DescribeEnd(int wait_status);

}  // namespace epochmeter::cli
