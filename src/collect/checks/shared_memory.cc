// SPDX-License-Identifier: Apache-2.0
// /dev/shm carries batches between DataLoader workers; docker gives it 64 MB by default.
#include <sys/statvfs.h>

#include "base/strings.h"
#include "collect/checks/check_list.h"
#include "collect/checks/look.h"

namespace epochmeter::collect {
namespace {

constexpr double kWantedBytes = 1024.0 * 1024 * 1024;

model::CheckFacts Run(const CheckContext& context) {
  // That of the asked process may be another: it may live in a container.
  std::string path = context.Path("/dev/shm");
  if (context.pid > 0) {
    const std::string theirs =
        context.Path("/proc/" + std::to_string(context.pid) + "/root/dev/shm");
    if (Exists(theirs)) path = theirs;
  }
  struct statvfs info {};
  if (::statvfs(path.c_str(), &info) != 0) {
    return {Limited("/dev/shm is not there", "DataLoader workers and NCCL need it",
                    "mount a tmpfs on /dev/shm")};
  }
  const auto unit = static_cast<double>(info.f_frsize);
  return {SharedMemoryFact(path, unit * static_cast<double>(info.f_blocks),
                           unit * static_cast<double>(info.f_bavail))};
}

}  // namespace

model::CheckFact SharedMemoryFact(const std::string& path, double total_bytes, double free_bytes) {
  const std::string sizes =
      base::FormatBytes(total_bytes) + ", of which " + base::FormatBytes(free_bytes) + " free";
  constexpr const char* kFix =
      "docker --shm-size=8g or --ipc=host; Kubernetes: an emptyDir of medium Memory on /dev/shm";
  if (total_bytes < kWantedBytes) {
    return Limited("/dev/shm is small",
                   path + " has " + sizes +
                       "; DataLoader workers die of a bus error when it is "
                       "full",
                   kFix);
  }
  if (free_bytes < kWantedBytes / 4) {
    return Limited("/dev/shm is nearly full", path + " has " + sizes,
                   "remove what dead processes left in /dev/shm");
  }
  return Ok("/dev/shm has " + sizes);
}

const CheckDef kSharedMemoryCheck = {
    .id = "host.shared_memory", .summary = "room in /dev/shm", .Run = Run};

}  // namespace epochmeter::collect
