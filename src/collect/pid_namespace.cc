// SPDX-License-Identifier: Apache-2.0
#include "collect/pid_namespace.h"

#include <dirent.h>
#include <fmt/format.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include "base/file.h"
#include "base/strings.h"

namespace epochmeter::collect {
namespace {

// include/uapi/linux/nsfs.h, PROC_PID_INIT_INO: the same in every kernel since 3.8.
constexpr std::string_view kInitialNamespace = "pid:[4026531836]";

std::string ReadLink(const std::string& path) {
  std::array<char, PATH_MAX> text{};
  const ssize_t size = ::readlink(path.c_str(), text.data(), text.size());
  return size > 0 ? std::string(text.data(), static_cast<size_t>(size)) : std::string();
}

std::string ReadText(const std::string& path) {
  const base::Result<std::string> text = base::ReadFile(path, size_t{64} << 10);
  return text.ok() ? *text : std::string();
}

// The pid that `proc_root` gives this process.
std::optional<int64_t> SelfIn(const std::string& proc_root) {
  return base::ParseInt(ReadLink(proc_root + "/self"));
}

bool ShowsKernelThreads(const std::string& proc_root) {
  return base::Trim(ReadText(proc_root + "/2/comm")) == "kthreadd";
}

// The pids of a process from the namespace of `proc_root` inwards; the last is its own view.
std::vector<int64_t> NamespacePids(const std::string& proc_root, std::string_view pid) {
  const std::string status = ReadText(fmt::format("{}/{}/status", proc_root, pid));
  const size_t at = status.find("\nNSpid:");
  std::vector<int64_t> pids;
  if (at == std::string::npos) return pids;
  const std::string_view line = std::string_view(status).substr(at + 7);
  for (const auto word : base::SplitWhitespace(line.substr(0, line.find('\n')))) {
    pids.push_back(base::ParseInt(word).value_or(0));
  }
  return pids;
}

std::optional<uint64_t> StartTicks(const std::string& proc_root, std::string_view pid) {
  const auto stat = ParseProcStat(ReadText(fmt::format("{}/{}/stat", proc_root, pid)));
  return stat ? std::optional(stat->key.start_ticks) : std::nullopt;
}

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};

// The process that is `pid` in our namespace, by the host's numbers: as deep as we are, with the
// same innermost pid and, where our own /proc shows it, the same start.
int32_t TranslateTraining(const std::string& host_proc, size_t depth, int32_t pid,
                          std::optional<uint64_t> start_ticks) {
  const std::unique_ptr<DIR, CloseDir> dir(::opendir(host_proc.c_str()));
  if (!dir) return 0;
  int32_t found = 0;
  while (const dirent* entry = ::readdir(dir.get())) {
    const auto host_pid = base::ParseInt(entry->d_name);
    if (!host_pid) continue;
    const std::vector<int64_t> pids = NamespacePids(host_proc, entry->d_name);
    if (pids.size() != depth || pids.back() != pid) continue;
    if (start_ticks && StartTicks(host_proc, entry->d_name) != start_ticks) continue;
    if (found != 0) return 0;  // two containers have such a process and nothing tells them apart
    found = static_cast<int32_t>(*host_pid);
  }
  return found;
}

InitialProc Unknown(std::string why_not) {
  return {.root = {}, .training_pid = 0, .why_not = std::move(why_not)};
}

InitialProc Translate(const std::string& proc_root, const std::string& host_proc,
                      int32_t training_pid, int32_t own_pid) {
  const auto self = SelfIn(host_proc);
  if (!self || !ShowsKernelThreads(host_proc)) {
    return Unknown(host_proc + " is not the host's /proc");
  }
  const std::vector<int64_t> pids = NamespacePids(host_proc, std::to_string(*self));
  if (pids.size() < 2 || pids.back() != own_pid) {
    return Unknown(host_proc + " does not tell the pids of this container (NSpid)");
  }
  std::optional<uint64_t> start_ticks;
  if (SelfIn(proc_root) == own_pid) {
    start_ticks = StartTicks(proc_root, std::to_string(training_pid));
  }
  const int32_t found = TranslateTraining(host_proc, pids.size(), training_pid, start_ticks);
  if (found == 0) return Unknown(host_proc + " does not show the training without doubt");
  return {.root = host_proc, .training_pid = found, .why_not = {}};
}

}  // namespace

InitialProc FindInitialProc(const std::string& proc_root, const std::string& host_proc,
                            int32_t training_pid, int32_t own_pid) {
  const auto self = SelfIn(proc_root);
  if (self == own_pid && ReadLink(proc_root + "/self/ns/pid") == kInitialNamespace) {
    return {.root = proc_root, .training_pid = training_pid, .why_not = {}};
  }
  InitialProc found;
  if (self && self != own_pid) {
    // A namespace of our own under the /proc of the one outside.
    found = Translate(proc_root, proc_root, training_pid, own_pid);
  } else if (!host_proc.empty()) {
    found = Translate(proc_root, host_proc, training_pid, own_pid);
  } else {
    found = Unknown(
        "this is a pid namespace of its own, as in a container, and the driver names processes by "
        "the host's pids; run the container with --pid=host, or mount the host's /proc at "
        "/host/proc");
  }
  found.proc_is_ours = self == own_pid;
  return found;
}

std::string HostProcFromEnv() {
  const char* named = std::getenv("EPOCHMETER_HOST_PROC");
  if (named != nullptr) return named;
  return ::access("/host/proc/2", F_OK) == 0 ? "/host/proc" : "";
}

}  // namespace epochmeter::collect
