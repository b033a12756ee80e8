// SPDX-License-Identifier: Apache-2.0
// NVML names processes by the pids of the host. In a pid namespace of one's own these name nobody,
// or somebody else.
#include <unistd.h>

#include "collect/checks/check_list.h"
#include "collect/checks/look.h"
#include "collect/pid_namespace.h"

namespace epochmeter::collect {
namespace {

// The kernel's fixed inode of the first pid namespace (PROC_PID_INIT_INO).
constexpr std::string_view kFirstNamespace = "pid:[4026531836]";

model::CheckFacts Run(const CheckContext& context) {
  const std::string space = LinkOf(context.Path("/proc/self/ns/pid"));
  const std::string container = ContainerKind(context);
  if (space.empty()) return {};
  if (space == kFirstNamespace) return {Ok("pids here are those of the host")};
  const int32_t pid = context.pid > 0 ? context.pid : ::getpid();
  const InitialProc host = FindInitialProc(context.Path("/proc"), HostProcFromEnv(), pid);
  if (host.known()) return {Ok("pids of the host are known through " + host.root)};
  const std::string what =
      "a pid namespace of its own" + (container.empty() ? "" : " (" + container + ")");
  if (!HasNvidia(context)) {
    return {Info(what, "processes outside can't be seen, and can't be attached to")};
  }
  return {
      Limited(what + ": NVML's processes can't be named",
              "NVML gives host pids, so the training's own part of GPU memory comes from the "
              "framework's allocator only, else it is unknown",
              "docker --pid=host or -v /proc:/host/proc:ro; Kubernetes hostPID: true; or record "
              "with the Python hooks")};
}

}  // namespace

const CheckDef kPidNamespaceCheck = {
    .id = "host.pid_namespace", .summary = "whose pids are seen", .Run = Run};

}  // namespace epochmeter::collect
