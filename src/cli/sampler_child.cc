// SPDX-License-Identifier: Apache-2.0
#include "cli/sampler_child.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "cli/helper_process.h"
#include "cli/signals.h"

namespace epochmeter::cli {
namespace {

// A tick of many GPUs must fit while the recorder is busy.
constexpr int kChannelBytes = 1 << 20;

// Only async-signal-safe calls between fork and exec: other threads are running.
[[noreturn]] void ExecSampler(int channel, int printed, char* const* argv) {
  if (printed >= 0) ::dup2(printed, STDOUT_FILENO);
  if (printed >= 0) ::dup2(printed, STDERR_FILENO);
  ::fcntl(channel, F_SETFD, 0);
  UnblockAllSignals();
  ::execv("/proc/self/exe", argv);
  ::_exit(127);
}

}  // namespace

bool SamplerChild::Start(const Task& task) {
  base::Result<SocketPair> pair = MakeSocketPair();
  if (!pair.ok()) return false;
  const base::UniqueFd theirs = std::move(pair->theirs);
  ::setsockopt(theirs.get(), SOL_SOCKET, SO_SNDBUF, &kChannelBytes, sizeof kChannelBytes);
  std::vector<std::string> words = {"epochmeter",    "internal-sampler",
                                    "--channel",     std::to_string(theirs.get()),
                                    "--interval-ns", std::to_string(task.interval_ns),
                                    "--root-pid",    std::to_string(task.training_pid)};
  if (task.all_gpus) words.emplace_back("--all-gpus");
  if (std::isfinite(task.cpu_ratio)) {
    words.insert(words.end(), {"--cpu-ratio", std::to_string(task.cpu_ratio)});
  }
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int printed = output_.Make();
  pid_ = ::fork();
  if (pid_ == 0) ExecSampler(theirs.get(), printed, argv.data());
  output_.Started(base::MonotonicNs());
  if (pid_ < 0) return false;
  channel_ = std::move(pair->ours);
  return true;
}

std::optional<int> SamplerChild::Ended() {
  int status = 0;
  if (pid_ <= 0 || ::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  pid_ = -1;
  return status;
}

void SamplerChild::Kill() {
  channel_.Reset();
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  dying_pid_ = std::exchange(pid_, -1);
  ReapDying();
}

void SamplerChild::ReapDying() {
  if (dying_pid_ > 0 && ::waitpid(dying_pid_, nullptr, WNOHANG) != 0) dying_pid_ = -1;
}

std::string DescribeEnd(int wait_status) {
  if (WIFEXITED(wait_status))
    return "ended with exit code " + std::to_string(WEXITSTATUS(wait_status));
  const int signal = WTERMSIG(wait_status);
  return "ended by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
}

}  // namespace epochmeter::cli
