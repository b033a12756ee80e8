// SPDX-License-Identifier: Apache-2.0
// /proc: whether it is there and shows other processes.
#include <unistd.h>

#include <algorithm>

#include "base/strings.h"
#include "collect/checks/check_list.h"
#include "collect/checks/look.h"

namespace epochmeter::collect {
namespace {

// The value of hidepid, empty when processes are shown.
std::string HidePid(const Mount& proc) {
  for (const std::string_view option : base::Split(proc.options, ',')) {
    if (!base::StartsWith(option, "hidepid=")) continue;
    const std::string_view value = option.substr(8);
    return value == "0" || value == "off" ? "" : std::string(value);
  }
  return {};
}

model::CheckFacts Run(const CheckContext& context) {
  model::CheckFacts facts;
  if (ReadErrno(context.Path("/proc/stat")) != 0) {
    facts.push_back(Fault("/proc can't be read", "without it there are no host and process metrics",
                          "mount it: `mount -t proc proc /proc`"));
    return facts;
  }
  if (context.probe != nullptr && !context.probe->host_ended_badly.empty()) {
    facts.push_back(Fault("reading the host's metrics failed",
                          "the process that read them " + context.probe->host_ended_badly,
                          "a file system that does not answer (a dead NFS mount?) is the usual "
                          "cause: see `dmesg` and `mount`"));
  }
  const std::optional<Mount> proc = MountAt(context, "/proc");
  const std::string hidden = proc ? HidePid(*proc) : "";
  if (hidden.empty()) {
    facts.push_back(Ok("/proc shows the machine and all processes"));
  } else if (::geteuid() == 0 && context.root.empty()) {
    facts.push_back(Ok("/proc shows all processes, as this is root", "hidepid=" + hidden));
  } else {
    facts.push_back(Limited("/proc shows only processes of this user",
                            "it is mounted with hidepid=" + hidden,
                            "join the group of its gid= option, or remount: `mount -o "
                            "remount,hidepid=0 /proc` (root)"));
  }
  const auto scope = ReadTrimmed(context.Path("/proc/sys/kernel/yama/ptrace_scope"));
  if (scope && *scope != "0") {
    facts.push_back(
        Ok("attach works here", "kernel.yama.ptrace_scope is " + *scope +
                                    "; it forbids tracing, and attach only reads /proc"));
  }
  return facts;
}

}  // namespace

const CheckDef kProcCheck = {.id = "host.proc", .summary = "/proc and attaching", .Run = Run};

}  // namespace epochmeter::collect
