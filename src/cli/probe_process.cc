// SPDX-License-Identifier: Apache-2.0
#include "cli/probe_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/strings.h"
#include "cli/helper_process.h"
#include "cli/process_priority.h"
#include "collect/nvml/session.h"
#include "collect/nvml_probe.h"
#include "collect/schedule.h"
#include "collect/sources.h"
#include "model/registry.h"
#include "runfile/record_codec.h"

namespace epochmeter::cli {
namespace {

constexpr FlagSpec kFlags[] = {
    {.name = "channel", .value_name = "FD", .help = "where records are written"},
    {.name = "what", .value_name = "WHAT", .help = "gpu or host"},
    {.name = "root", .value_name = "FOLDER", .help = "stands for /"},
    {.name = "root-pid", .value_name = "PID", .help = "whose processes are read"},
};

// Readings of everything are so far apart that GPM, which needs 100 ms, and rates have values.
constexpr int64_t kReadingNs = 200 * base::kNsPerMs;
constexpr int kReadings = 7;
constexpr int64_t kBudgetNs = 3 * base::kNsPerSecond;
// Without a word for so long the driver hangs. A healthy one may take seconds to wake its GPUs.
constexpr int64_t kSilenceNs = 10 * base::kNsPerSecond;

// Each record at once, so that what was said before a crash is there.
class PipeSink : public model::Sink {
 public:
  explicit PipeSink(int fd) : fd_(fd) {}
  void Write(const model::Record& record) override {
    base::ByteWriter bytes;
    runfile::EncodeRecord(record, bytes);
    if (!base::WriteAll(fd_, bytes.bytes(), "the channel").ok()) ::_exit(kExitInternal);
  }

 private:
  int fd_;
};

void ReadSources(const collect::SourceContext& context, std::span<const collect::SourceDef> defs) {
  const auto schedule = collect::Schedule::Make(context, defs, "doctor");
  const int64_t begin_ns = base::MonotonicNs();
  for (int i = 0; i < kReadings && base::MonotonicNs() - begin_ns < kBudgetNs; ++i) {
    schedule->RunAllNow(base::MonotonicNs());
    const timespec pause{.tv_sec = 0, .tv_nsec = kReadingNs};
    if (i + 1 < kReadings) ::nanosleep(&pause, nullptr);
  }
}

// A probing process as its parent sees it.
class Child {
 public:
  Child(const std::string& what, const ProbeOptions& options) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
      output_.ended_badly = std::string("could not be started: ") + std::strerror(errno);
      return;
    }
    from_ = base::UniqueFd(ends[0]);
    const base::UniqueFd to(ends[1]);
    std::vector<std::string> words = {"epochmeter", "internal-probe", "--what",
                                      what,         "--channel",      std::to_string(to.get())};
    if (!options.root.empty()) words.insert(words.end(), {"--root", options.root});
    const int32_t pid = options.pid > 0 ? options.pid : ::getppid();
    words.insert(words.end(), {"--root-pid", std::to_string(pid)});
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    heard_ns_ = base::MonotonicNs();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::fcntl(to.get(), F_SETFD, 0);
      ::execv("/proc/self/exe", argv.data());
      ::_exit(kExitNotFound);
    }
    if (pid_ < 0)
      output_.ended_badly = std::string("could not be started: ") + std::strerror(errno);
    if (pid_ < 0) from_.Reset();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    if (pid_ > 0) ::waitpid(pid_, nullptr, WNOHANG);  // stuck in the driver it can't be waited for
  }

  int fd() const { return from_.get(); }
  int64_t deadline_ns() const { return heard_ns_ + kSilenceNs; }

  void Read() {
    std::array<char, 65536> chunk{};
    const ssize_t n = ::read(from_.get(), chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) return;
    if (n <= 0) return End();
    heard_ns_ = base::MonotonicNs();
    buffer_.append(chunk.data(), static_cast<size_t>(n));
    base::ByteReader reader(buffer_);
    model::Record record;
    for (;;) {
      const runfile::DecodeStatus status = runfile::DecodeRecord(reader, &record);
      if (status == runfile::DecodeStatus::kIncomplete) break;
      if (status == runfile::DecodeStatus::kRecord) Keep(std::move(record));
    }
    buffer_.erase(0, buffer_.size() - reader.remaining());
  }

  void GiveUp() {
    output_.ended_badly =
        "did not answer for " + base::FormatDuration(base::SecondsFromNs(kSilenceNs));
    ::kill(pid_, SIGKILL);
    from_.Reset();
  }

  collect::ProbeOutput Take() { return std::move(output_); }

 private:
  void Keep(model::Record record) {
    const auto* event = std::get_if<model::Event>(&record);
    if (event != nullptr && event->name == collect::kProbeCall) {
      output_.last_call = event->Text("call").value_or("");
    }
    output_.records.push_back(std::move(record));
  }

  void End() {
    from_.Reset();
    int status = 0;
    if (::waitpid(std::exchange(pid_, -1), &status, 0) < 0) return;
    if (WIFSIGNALED(status)) {
      const int signal = WTERMSIG(status);
      output_.ended_badly =
          "ended by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
    } else if (WEXITSTATUS(status) != 0) {
      output_.ended_badly = "ended with code " + std::to_string(WEXITSTATUS(status));
    }
  }

  pid_t pid_ = -1;
  base::UniqueFd from_;
  int64_t heard_ns_ = 0;
  std::string buffer_;
  collect::ProbeOutput output_;
};

void WaitFor(std::span<Child*> children) {
  for (;;) {
    std::vector<pollfd> polls;
    int64_t next_ns = INT64_MAX;
    for (Child* child : children) {
      polls.push_back({.fd = child->fd(), .events = POLLIN, .revents = 0});
      if (child->fd() >= 0) next_ns = std::min(next_ns, child->deadline_ns());
    }
    if (next_ns == INT64_MAX) return;
    const int64_t wait_ns = std::max<int64_t>(0, next_ns - base::MonotonicNs());
    ::poll(polls.data(), polls.size(), static_cast<int>(wait_ns / base::kNsPerMs) + 1);
    for (size_t i = 0; i < children.size(); ++i) {
      if (polls[i].fd < 0) continue;
      if (polls[i].revents != 0) {
        children[i]->Read();
      } else if (children[i]->deadline_ns() <= base::MonotonicNs()) {
        children[i]->GiveUp();
      }
    }
  }
}

// What stands for a reason where a source gave neither a value nor one.
std::string WithoutReason(const collect::ProbeOutput& output) {
  if (output.ended_badly.empty()) return "none was found here";
  return "the process that read it " + output.ended_badly;
}

}  // namespace

const std::span<const FlagSpec> kProbeFlags = kFlags;

collect::MachineProbe ProbeMachine(const ProbeOptions& options) {
  collect::MachineProbe probe;
  probe.gpu_asked = options.gpu;
  Child host("host", options);
  std::optional<Child> gpu;
  std::vector<Child*> children = {&host};
  if (options.gpu) children.push_back(&gpu.emplace("gpu", options));
  WaitFor(children);
  const collect::ProbeOutput host_output = host.Take();
  probe.host_ended_badly = host_output.ended_badly;
  if (gpu) probe.gpu_output = gpu->Take();
  probe.nvml = collect::ReadNvmlProbe(probe.gpu_output.records);
  const std::string gpu_reason =
      options.gpu ? WithoutReason(probe.gpu_output) : "not asked for (--no-gpu)";
  probe.gpu_sources =
      collect::ReadSourceProbe(probe.gpu_output.records, collect::GpuSources(), gpu_reason);
  probe.host_sources = collect::ReadSourceProbe(host_output.records, collect::HostSources(),
                                                WithoutReason(host_output));
  return probe;
}

int RunProbe(const Arguments& arguments) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, "epm-probe");
  const auto pid = base::ParseInt(arguments.Value("root-pid").value_or("0"));
  const std::string what = arguments.Value("what").value_or("");
  const std::string root = arguments.Value("root").value_or("");
  const auto channel = base::ParseInt(arguments.Value("channel").value_or(""));
  if (!pid || !channel || (what != "gpu" && what != "host")) return kExitUsage;
  PointToNull(STDOUT_FILENO);  // a stub library greets there
  LowerPriority();
  model::Env env;
  env.proc_root = root + env.proc_root;
  env.sys_root = root + env.sys_root;
  PipeSink sink(static_cast<int>(*channel));
  model::Registry registry(sink);
  const collect::JobScope job{.root_pid = static_cast<int32_t>(*pid), .cgroup = ""};
  collect::nvml::LibraryOptions library = collect::nvml::LibraryOptionsFromEnv();
  library.root = root;
  if (what == "gpu") collect::nvml::ProbeNvml(library, sink);
  collect::nvml::Session session(library);
  const collect::SourceContext context{.env = env,
                                       .registry = registry,
                                       .sink = sink,
                                       .tick_ns = base::kNsPerSecond,
                                       .job = job,
                                       .nvml = what == "gpu" ? &session : nullptr};
  ReadSources(context, what == "gpu" ? collect::GpuSources() : collect::HostSources());
  return kExitOk;
}

}  // namespace epochmeter::cli
