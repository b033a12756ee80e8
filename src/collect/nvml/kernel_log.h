// SPDX-License-Identifier: Apache-2.0
// XID lines of the kernel log, where it can be read (root, or kernel.dmesg_restrict = 0). It also
// holds what happened before anyone listened. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace epochmeter::collect::nvml {

struct KernelXid {
  int64_t t_ns = 0;    // CLOCK_MONOTONIC, as the kernel stamps
  std::string bus_id;  // "0000:1a:00", without the function
  uint32_t xid = 0;
  std::string text;  // the rest of the line
};

class KernelLog {
 public:
  explicit KernelLog(std::string path) : path_(std::move(path)) {}

  // The XID lines since the last call; never waits. The first call gives those that the log still
  // holds. Nothing where the log can't be read.
  std::vector<KernelXid> Read();

 private:
  std::string path_;
  base::UniqueFd fd_;
  bool tried_ = false;
};

// From a record of /dev/kmsg, "4,1201,5140900000,-;NVRM: Xid (PCI:0000:1a:00): 79, pid=..."
std::optional<KernelXid> ParseKernelXid(std::string_view record);

}  // namespace epochmeter::collect::nvml
