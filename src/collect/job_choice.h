// SPDX-License-Identifier: Apache-2.0
// Which GPUs are the job's, by what the environments of its processes say.
//
// Not everybody's word counts. A shell uses no GPU, and a launcher (a process with a child of
// another rank) lets its children decide. Once there is a launcher, only processes with a rank
// speak. A speaker without any choice means that every GPU may be the job's. What was chosen once
// stays chosen when its process ends. A process may choose for itself later, in its own memory,
// which no environment shows: what the training names and where its processes run counts beside.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collect/proc_pid.h"
#include "collect/visible_devices.h"

namespace epochmeter::collect {

struct JobProcess {
  ProcKey key;
  int32_t parent = 0;
  std::string name;  // as /proc/PID/comm
  std::string rank;  // values of the rank variables, joined; empty without any
  VisibleVariables variables;
};
// From comm and environ.
JobProcess DescribeJobProcess(const ProcStat& stat, std::string_view comm,
                              std::string_view environ_text);

class JobChoice {
 public:
  struct Answer {
    bool restricted = false;  // false: nothing says which
    std::set<size_t> gpus;    // places; those chosen when restricted
    std::string note;
  };
  // Processes that live now; what they choose is remembered.
  const Answer& Decide(std::span<const JobProcess> processes, std::span<const GpuIdentity> gpus,
                       int driver_branch);

 private:
  std::set<size_t> chosen_;  // ever, by a speaker with a choice
  Answer answer_;
};

}  // namespace epochmeter::collect
