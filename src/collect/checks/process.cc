// SPDX-License-Identifier: Apache-2.0
// What can be known of one process: whether `attach` works, and what it would miss.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/strings.h"
#include "collect/cgroup.h"
#include "collect/checks/check_list.h"
#include "collect/checks/look.h"
#include "collect/proc_pid.h"

namespace epochmeter::collect {
namespace {

model::CheckFact Io(const std::string& folder) {
  const int error = ReadErrno(folder + "/io");
  if (error == 0) return Ok("its reads and writes can be counted");
  return Limited("its reads and writes can't be counted",
                 "/proc/PID/io: " + std::string(std::strerror(error)),
                 "attach as the user who runs it, or as root; programs that changed their user or "
                 "are not readable refuse it too");
}

model::CheckFact Owner(const CheckContext& context, uid_t owner) {
  const uid_t own = ::geteuid();
  const std::string text = "process " + std::to_string(context.pid);
  if (owner == own || own == 0) return Ok("attach to " + text + " works");
  return Limited("attach to " + text + " works in part",
                 "it belongs to user " + std::to_string(owner) +
                     ": CPU, memory and threads are "
                     "readable; its environment, reads and writes, and events are not",
                 "attach as that user, or as root");
}

model::CheckFacts OfEnvironment(const std::string& text) {
  model::CheckFacts facts;
  const auto devices = EnvironValue(text, "CUDA_VISIBLE_DEVICES");
  if (devices) {
    facts.push_back(Info("its CUDA_VISIBLE_DEVICES is \"" + std::string(*devices) + "\"",
                         devices->empty() ? "it sees no GPU at all" : ""));
  }
  const auto socket = EnvironValue(text, "EPOCHMETER_SOCKET");
  const auto run = EnvironValue(text, "EPOCHMETER_RUN_ID");
  if (socket && run && Exists(std::string(*socket))) {
    facts.push_back(Info("it is recorded already, as run " + std::string(*run),
                         "its recorder listens at " + std::string(*socket),
                         "a second recorder would get no epochs and steps"));
  } else {
    facts.push_back(Info("its epochs and steps would not be known",
                         "it was started without `epochmeter run`, so nothing in it sends events",
                         "start it by `epochmeter run`, or call epochmeter.start() in it"));
  }
  return facts;
}

void Namespaces(const CheckContext& context, const std::string& folder, model::CheckFacts& facts) {
  const std::string theirs = LinkOf(folder + "/ns/pid");
  const std::string ours = LinkOf(context.Path("/proc/self/ns/pid"));
  if (theirs.empty() || ours.empty() || theirs == ours) return;
  facts.push_back(Limited("it lives in another pid namespace (a container)",
                          "an event socket made here can't be seen in there, so its events don't "
                          "reach an attached recorder",
                          "record inside the container: `epochmeter run` there"));
}

model::CheckFacts Run(const CheckContext& context) {
  if (context.pid <= 0) return {};
  const std::string folder = context.Path("/proc/" + std::to_string(context.pid));
  struct stat info {};
  const auto text = ReadTrimmed(folder + "/stat");
  const auto process = text ? ParseProcStat(*text) : std::nullopt;
  if (::stat(folder.c_str(), &info) != 0 || !process || process->ended()) {
    return {Fault("there is no process " + std::to_string(context.pid),
                  process ? "it has ended and waits for its parent" : "/proc does not show it",
                  "give the pid of a running process; hidepid or a container may hide it")};
  }
  model::CheckFacts facts = {Owner(context, info.st_uid), Io(folder)};
  Namespaces(context, folder, facts);
  if (const auto environ_text = ReadTrimmed(folder + "/environ")) {
    for (model::CheckFact& fact : OfEnvironment(*environ_text)) facts.push_back(std::move(fact));
  }
  return facts;
}

}  // namespace

const CheckDef kProcessCheck = {.id = "process", .summary = "the process asked about", .Run = Run};

}  // namespace epochmeter::collect
