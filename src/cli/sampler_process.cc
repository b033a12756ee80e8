// SPDX-License-Identifier: Apache-2.0
#include "cli/sampler_process.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "base/clock.h"
#include "base/strings.h"
#include "base/unique_fd.h"
#include "cli/messages.h"
#include "cli/process_priority.h"
#include "cli/sampler_channel.h"
#include "cli/sampler_link.h"
#include "collect/nvml/session.h"
#include "collect/schedule.h"
#include "collect/sources.h"
#include "model/registry.h"

namespace epochmeter::cli {
namespace {

constexpr FlagSpec kFlags[] = {
    {.name = "channel", .value_name = "FD", .help = "the recorder's socket"},
    {.name = "interval-ns", .value_name = "N", .help = "tick"},
    {.name = "root-pid", .value_name = "PID", .help = "the training"},
    {.name = "cpu-ratio", .value_name = "N", .help = "of a core, at most; none without it"},
    {.name = "all-gpus",
     .value_name = "",
     .help = "those of others, too",
     .kind = FlagKind::kSwitch},
};
// For so long after SIGUSR1 nothing of the driver is open: enough to reset or reconfigure a GPU.
constexpr int64_t kReleaseNs = 60 * base::kNsPerSecond;

// SIGUSR1, taken as a descriptor: an NVML call is never interrupted by it. Without a descriptor
// (none are left) the signal has no effect.
class ReleaseRequests {
 public:
  ReleaseRequests() {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGUSR1);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    fd_ = base::UniqueFd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  }
  int fd() const { return fd_.get(); }
  // True when there was one since the last call.
  bool Take() {
    signalfd_siginfo info;
    bool any = false;
    while (::read(fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) any = true;
    return any;
  }

 private:
  base::UniqueFd fd_;
};

// What the recorder asked for since the last tick.
struct Asked {
  bool now = false;
  bool last = false;
};

// Waits until `due_ns`, a message or a signal; false when the recorder is gone.
bool WaitForTick(int channel, int signals, int64_t due_ns, Asked* asked, collect::JobScope* job) {
  const int64_t wait_ns = std::max<int64_t>(0, due_ns - base::MonotonicNs());
  timespec timeout{.tv_sec = wait_ns / base::kNsPerSecond, .tv_nsec = wait_ns % base::kNsPerSecond};
  std::array<pollfd, 2> fds = {{{.fd = channel, .events = POLLIN, .revents = 0},
                                {.fd = signals, .events = POLLIN, .revents = 0}}};
  if (::ppoll(fds.data(), fds.size(), &timeout, nullptr) <= 0 || fds[0].revents == 0) return true;
  char message[1 + kLongestGpuName];
  for (;;) {
    const ssize_t n = ::recv(channel, message, sizeof message, MSG_DONTWAIT);
    if (n == 0) return false;
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    asked->now = asked->now || message[0] == kSampleNow;
    asked->last = asked->last || message[0] == kSampleLast;
    if (message[0] == kGpuNamed) {
      job->named_gpus.emplace_back(message + 1, static_cast<size_t>(n - 1));
    }
  }
}

}  // namespace

const std::span<const FlagSpec> kSamplerFlags = kFlags;

int RunSampler(const Arguments& arguments) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, "epm-sampler");
  const auto channel = base::ParseInt(arguments.Value("channel").value_or(""));
  const auto tick_ns = base::ParseInt(arguments.Value("interval-ns").value_or(""));
  const auto root_pid = base::ParseInt(arguments.Value("root-pid").value_or("0"));
  if (!channel || !tick_ns || !root_pid || *tick_ns <= 0) return kExitUsage;
  // A driver that crashes at each start must not fill the training's folder.
  const rlimit no_core{.rlim_cur = 0, .rlim_max = 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  LowerPriority();
  ReleaseRequests release;
  const model::Env env;
  ChannelSink sink(static_cast<int>(*channel));
  model::Registry registry(sink);
  collect::JobScope job{.root_pid = static_cast<int32_t>(*root_pid),
                        .cgroup = "",
                        .excluded_pids = {},
                        .all_gpus = arguments.Has("all-gpus")};
  collect::nvml::Session session(collect::nvml::LibraryOptionsFromEnv());
  collect::SourceContext context{.env = env,
                                 .registry = registry,
                                 .sink = sink,
                                 .tick_ns = *tick_ns,
                                 .job = job,
                                 .nvml = &session};
  context.cpu_ratio =
      base::ParseDouble(arguments.Value("cpu-ratio").value_or("")).value_or(context.cpu_ratio);
  const auto schedule = collect::Schedule::Make(context, collect::GpuSources(), "sampler");
  for (Asked asked; sink.Send(); asked = {}) {
    if (!WaitForTick(static_cast<int>(*channel), release.fd(), schedule->NextDueNs(), &asked,
                     &job)) {
      break;
    }
    const int64_t now_ns = base::MonotonicNs();
    if (release.Take()) session.Release(now_ns, kReleaseNs);
    if (asked.last) {
      schedule->RunAtEnd(now_ns);
    } else if (asked.now) {
      schedule->RunAtEpoch(now_ns);
    }
    if (schedule->NextDueNs() <= now_ns) schedule->RunDue(now_ns);
  }
  return kExitOk;
}

}  // namespace epochmeter::cli
