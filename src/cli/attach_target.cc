// SPDX-License-Identifier: Apache-2.0
#include "cli/attach_target.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <filesystem>

#include "base/file.h"
#include "base/strings.h"
#include "cli/recorder.h"
#include "collect/proc_pid.h"

namespace epochmeter::cli {
namespace {

constexpr const char* kGivePid = "give the pid of a running process";

std::string ProcFolder(pid_t pid) { return "/proc/" + std::to_string(pid); }

std::string LinkOf(const std::string& path) {
  std::array<char, PATH_MAX> text{};
  const ssize_t size = ::readlink(path.c_str(), text.data(), text.size());
  return size <= 0 ? std::string() : std::string(text.data(), static_cast<size_t>(size));
}

std::optional<collect::ProcStat> StatOf(pid_t pid) {
  const base::Result<std::string> text = base::ReadFile(ProcFolder(pid) + "/stat");
  return text.ok() ? collect::ParseProcStat(*text) : std::nullopt;
}

base::Error CannotAttach(pid_t pid, std::string why, std::string what_to_do) {
  return {.what = "cannot attach to " + std::to_string(pid),
          .where = "",
          .why = std::move(why),
          .what_to_do = std::move(what_to_do)};
}

void DescribeLimits(AttachTarget& target) {
  const std::string folder = ProcFolder(target.pid);
  struct stat info {};
  const bool other = ::stat(folder.c_str(), &info) == 0 && info.st_uid != ::geteuid();
  if (other && ::geteuid() != 0) {
    target.limits.push_back(
        "it belongs to user " + std::to_string(info.st_uid) +
        ": its CPU, memory and threads are recorded; its environment, its reads and writes and its "
        "events are not (attach as that user or as root for these)");
    return;
  }
  const std::string theirs = LinkOf(folder + "/ns/pid");
  const std::string ours = LinkOf("/proc/self/ns/pid");
  if (!theirs.empty() && !ours.empty() && theirs != ours) {
    target.limits.emplace_back(
        "it lives in another pid namespace, as in a container: its events can't reach this "
        "recorder (run `epochmeter run` inside for epochs and steps)");
  }
  if (!target.environment) {
    target.limits.emplace_back(
        "its environment may not be read: its rank and its GPUs are not known");
  }
}

// The process that a pidfd of `recorder` stands for; -1 when it has ended.
pid_t ProcessOfPidfd(const std::string& recorder_folder, const std::string& fd) {
  const auto text = base::ReadFile(recorder_folder + "/fdinfo/" + fd, 65536);
  if (!text.ok()) return -1;
  for (const std::string_view line : base::Split(*text, '\n')) {
    if (!base::StartsWith(line, "Pid:")) continue;
    const auto pid = base::ParseInt(base::Trim(line.substr(4)));
    return pid ? static_cast<pid_t>(*pid) : -1;
  }
  return -1;
}

// The path that the datagram socket with one of these inodes ("socket:[4711]") is bound to.
std::string BoundPath(const std::vector<std::string>& sockets) {
  const auto text = base::ReadFile("/proc/net/unix", size_t{16} << 20);
  if (!text.ok()) return {};
  for (const std::string_view line : base::Split(*text, '\n')) {
    // Num RefCount Protocol Flags Type St Inode Path
    const auto words = base::SplitWhitespace(line);
    if (words.size() != 8 || words[4] != "0002" || words[7].front() != '/') continue;
    const std::string name = "socket:[" + std::string(words[6]) + "]";
    if (std::find(sockets.begin(), sockets.end(), name) != sockets.end()) {
      return std::string(words[7]);
    }
  }
  return {};
}

Recording DescribeRecorder(pid_t pid) {
  constexpr std::string_view kTail = ".tail";
  Recording found{.recorder_pid = pid, .training_pid = -1, .run_path = {}, .socket_path = {}};
  std::vector<std::string> sockets;
  const std::string folder = ProcFolder(pid);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/fd", error)) {
    const std::string target = LinkOf(entry.path().string());
    if (target.find("pidfd") != std::string::npos) {
      found.training_pid = ProcessOfPidfd(folder, entry.path().filename().string());
    } else if (base::EndsWith(target, kTail)) {
      found.run_path = target.substr(0, target.size() - kTail.size());
    } else if (base::StartsWith(target, "socket:")) {
      sockets.push_back(target);
    }
  }
  found.socket_path = BoundPath(sockets);
  return found;
}

// Its own pid first, then its parents, up to the first process.
std::vector<pid_t> Lineage(pid_t pid) {
  constexpr size_t kDeepest = 256;
  std::vector<pid_t> pids;
  while (pid > 0 && pids.size() < kDeepest) {
    pids.push_back(pid);
    const auto stat = StatOf(pid);
    pid = stat ? static_cast<pid_t>(stat->parent) : 0;
  }
  return pids;
}

}  // namespace

bool StillRuns(pid_t pid, uint64_t start_ticks) {
  const auto stat = StatOf(pid);
  return stat && stat->key.start_ticks == start_ticks && !stat->ended();
}

base::Result<AttachTarget> LookAtTarget(pid_t pid) {
  AttachTarget target;
  target.pid = pid;
  const std::string folder = ProcFolder(pid);
  const auto before = StatOf(pid);
  if (!before) return CannotAttach(pid, "there is no such process here", kGivePid);
  if (before->ended()) {
    return CannotAttach(pid, "it has ended and waits for its parent to notice", kGivePid);
  }
  const auto status = base::ReadFile(folder + "/status");
  const auto leader = status.ok() ? collect::NumberOfKey(*status, "Tgid:") : std::nullopt;
  if (leader && *leader != static_cast<uint64_t>(pid)) {
    return CannotAttach(pid, "it is a thread of process " + std::to_string(*leader),
                        "attach to " + std::to_string(*leader));
  }
  target.pidfd = base::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  // The descriptor is of the process that was looked at only if the start time is still the same.
  if (!StillRuns(pid, before->key.start_ticks)) {
    return CannotAttach(pid, "it ended just now", kGivePid);
  }
  target.start_ticks = before->key.start_ticks;
  if (const auto words = base::ReadFile(folder + "/cmdline"); words.ok()) {
    for (const auto word : base::Split(*words, '\0')) target.command.emplace_back(word);
    while (!target.command.empty() && target.command.back().empty()) target.command.pop_back();
  }
  if (auto text = base::ReadFile(folder + "/environ"); text.ok()) {
    target.environment = std::move(text).value();
  }
  target.working_folder = LinkOf(folder + "/cwd");
  DescribeLimits(target);
  return target;
}

std::optional<Recording> FindRecordingOf(pid_t pid) {
  const std::vector<pid_t> lineage = Lineage(pid);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto other = base::ParseInt(entry.path().filename().string());
    if (!other || *other == ::getpid()) continue;
    const auto name = base::ReadFile(entry.path().string() + "/comm", 64);
    if (!name.ok() || base::Trim(*name) != kRecorderName) continue;
    const Recording found = DescribeRecorder(static_cast<pid_t>(*other));
    if (std::find(lineage.begin(), lineage.end(), found.training_pid) != lineage.end()) {
      return found;
    }
  }
  return std::nullopt;
}

}  // namespace epochmeter::cli
