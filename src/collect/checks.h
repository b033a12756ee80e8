// SPDX-License-Identifier: Apache-2.0
// The checks of `epochmeter doctor`. A new check is one file in checks/ and one line in checks.cc.
//
// A check looks and says: it changes nothing, starts nothing, and opens no device. What can hang
// or crash (the driver's library) was done before, by a process of its own, and comes as the probe.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "collect/machine_probe.h"
#include "model/check.h"
#include "model/env.h"

namespace epochmeter::collect {

struct CheckContext {
  std::string root;          // stands before every absolute path; empty but in tests
  int32_t pid = 0;           // the process asked about; 0: none
  std::string run_folder;    // where run files would go
  std::string socket_error;  // why there is no folder for sockets; empty when there is
  std::string socket_folder;
  std::string python_folder;  // where the Python client is; empty: nowhere
  const MachineProbe* probe = nullptr;

  std::string Path(std::string_view absolute) const { return root + std::string(absolute); }
  model::Env env() const {
    model::Env env;
    env.proc_root = Path("/proc");
    env.sys_root = Path("/sys");
    return env;
  }
};

struct CheckDef {
  std::string_view id;       // "gpu.library"; never renamed
  std::string_view summary;  // what it looks at
  model::CheckFacts (*Run)(const CheckContext& context);
};

// In the order in which they are shown.
std::span<const CheckDef> Checks();

}  // namespace epochmeter::collect
