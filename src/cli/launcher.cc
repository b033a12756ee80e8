// SPDX-License-Identifier: Apache-2.0
#include "cli/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "cli/messages.h"
#include "cli/recorder.h"
#include "cli/relay.h"

namespace epochmeter::cli {
namespace {

using base::UniqueFd;

// Signals that reach us alone (kill PID) and are meant for the training.
constexpr std::array<int, 8> kForwarded = {SIGTERM, SIGHUP,  SIGINT,   SIGQUIT,
                                           SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT};
constexpr int64_t kRecorderFinishNs = 2 * base::kNsPerSecond;
constexpr int64_t kRelayDrainNs = 2 * base::kNsPerSecond;
constexpr int64_t kFirstRestartNs = 50 * base::kNsPerMs;
constexpr int64_t kLongestRestartNs = 60 * base::kNsPerSecond;

struct SocketPair {
  UniqueFd ours, theirs;
};
base::Result<SocketPair> MakeSocketPair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return base::SystemError("cannot make a socket pair", "socketpair", errno);
  }
  return SocketPair{.ours = UniqueFd(ends[0]), .theirs = UniqueFd(ends[1])};
}

// A child of ours that is started again after it dies, later each time.
struct Helper {
  pid_t pid = -1;
  int64_t restart_at_ns = 0;  // 0: not wanted
  int64_t delay_ns = kFirstRestartNs;
  int64_t started_ns = 0;

  void Died(int64_t now_ns) {
    pid = -1;
    if (now_ns - started_ns > kLongestRestartNs) delay_ns = kFirstRestartNs;
    restart_at_ns = now_ns + delay_ns;
    delay_ns = std::min(2 * delay_ns, kLongestRestartNs);
  }
};

void SetEnvironment(const RunSettings& settings) {
  ::setenv("EPOCHMETER_RUN_ID", settings.run_id.c_str(), 1);
  ::setenv("EPOCHMETER_SOCKET", settings.socket_path.c_str(), 1);
  char self[4096];
  const ssize_t size = ::readlink("/proc/self/exe", self, sizeof self - 1);
  if (size > 0)
    ::setenv("EPOCHMETER_BINARY", std::string(self, static_cast<size_t>(size)).c_str(), 0);
  const std::string python = PythonFolder();
  if (!settings.hooks || python.empty()) return;
  std::string path = python + "/epochmeter/_bootstrap";
  const char* before = std::getenv("PYTHONPATH");
  if (before != nullptr && *before != '\0') path += ":" + std::string(before);
  ::setenv("PYTHONPATH", path.c_str(), 1);
}

class Launcher {
 public:
  explicit Launcher(const RunSettings& settings) : settings_(settings) {}

  int Run() {
    if (base::Result<> ready = SetUp(); !ready.ok()) {
      std::fprintf(stderr, "epochmeter: %s; running without recording\n",
                   ready.error().Message().c_str());
      RestoreSignals();
      return ExecPlainly(settings_.command);
    }
    StartRecorder();
    const int failure = StartTraining();
    if (failure != 0) {
      Finish();
      return failure;
    }
    if (!output_.streams.empty()) StartRelay();
    while (!training_status_) HandleSignals(NextTimeoutMs());
    Finish();
    return EndLikeTheTraining();
  }

 private:
  base::Result<> SetUp() {
    ::sigprocmask(SIG_BLOCK, nullptr, &original_mask_);
    // Ours, so that datagrams wait in it while a recorder is being restarted.
    EPM_ASSIGN(event_socket_, BindEventSocket(settings_.socket_path));
    EPM_ASSIGN(control_, MakeSocketPair());
    EPM_ASSIGN(capture_, MakeSocketPair());
    EPM_ASSIGN(relay_control_, MakeSocketPair());
    if (settings_.capture_output) {
      EPM_ASSIGN(output_, PlanOutput());
    }
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigset_t watched;
    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    for (const int signal : kForwarded) sigaddset(&watched, signal);
    ::sigprocmask(SIG_BLOCK, &watched, nullptr);
    signals_ = UniqueFd(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_.valid()) return base::SystemError("cannot watch signals", "signalfd", errno);
    return {};
  }

  void RestoreSignals() { ::sigprocmask(SIG_SETMASK, &original_mask_, nullptr); }

  void StartRecorder() {
    recorder_.started_ns = base::MonotonicNs();
    recorder_.restart_at_ns = 0;
    const bool resume = std::exchange(recorder_was_started_, true);
    recorder_.pid = ::fork();
    if (recorder_.pid != 0) {
      if (recorder_.pid < 0) recorder_.Died(recorder_.started_ns);
      return;
    }
    BecomeHelper("epm-recorder");
    for (RelayStream& stream : output_.streams) ::close(stream.from);
    output_.child_stdout.Reset();
    output_.child_stderr.Reset();
    const RecorderChannels channels{.event_socket = event_socket_.get(),
                                    .control = control_.theirs.get(),
                                    .capture = capture_.theirs.get()};
    control_.ours.Reset();
    capture_.ours.Reset();
    relay_control_ = {};
    RecorderStart start{.resume = resume, .training_pid = training_pid_};
    ::_exit(RunRecorder(settings_, channels, start));
  }

  void StartRelay() {
    relay_.started_ns = base::MonotonicNs();
    relay_.restart_at_ns = 0;
    relay_.pid = ::fork();
    if (relay_.pid != 0) {
      if (relay_.pid < 0) relay_.Died(relay_.started_ns);
      return;
    }
    BecomeHelper("epm-relay");
    control_ = {};
    event_socket_.Reset();
    capture_.theirs.Reset();
    relay_control_.ours.Reset();
    RunRelay(output_.streams,
             {.capture = capture_.ours.get(), .control = relay_control_.theirs.get()});
    ::_exit(0);
  }

  // Helpers share the terminal's process group, so that they may write to it; what the terminal or
  // a job manager sends to the group is for the training, not for them.
  void BecomeHelper(const char* name) {
    signals_.Reset();
    ::prctl(PR_SET_NAME, name);
    for (const int signal :
         {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGPIPE, SIGTTOU}) {
      ::signal(signal, SIG_IGN);
    }
    RestoreSignals();
  }

  // 0, or the exit code that says why the command could not be started.
  int StartTraining() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return kExitRunFailed;
    UniqueFd failure_out(ends[0]), failure_in(ends[1]);
    training_pid_ = ::fork();
    if (training_pid_ < 0) return kExitRunFailed;
    if (training_pid_ == 0) ExecTraining(failure_in.get());
    failure_in.Reset();
    output_.child_stdout.Reset();
    output_.child_stderr.Reset();
    int exec_errno = 0;
    const ssize_t n = ::read(failure_out.get(), &exec_errno, sizeof exec_errno);
    if (n == static_cast<ssize_t>(sizeof exec_errno)) {
      ::waitpid(training_pid_, nullptr, 0);
      std::fprintf(stderr, "epochmeter: cannot run %s: %s\n", settings_.command.front().c_str(),
                   std::strerror(exec_errno));
      const int code = exec_errno == ENOENT ? kExitNotFound : kExitNotExecutable;
      Tell({.kind = ControlMessage::Kind::kTrainingEnded,
            .pid = training_pid_,
            .wait_status = code << 8});
      return code;
    }
    Tell({.kind = ControlMessage::Kind::kTrainingStarted, .pid = training_pid_, .wait_status = 0});
    return 0;
  }

  [[noreturn]] void ExecTraining(int failure_fd) {
    if (output_.child_stdout.valid()) ::dup2(output_.child_stdout.get(), STDOUT_FILENO);
    if (output_.child_stderr.valid()) ::dup2(output_.child_stderr.get(), STDERR_FILENO);
    SetEnvironment(settings_);
    RestoreSignals();
    std::vector<char*> words;
    for (const std::string& word : settings_.command)
      words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    ::execvp(words[0], words.data());
    const int exec_errno = errno;
    [[maybe_unused]] const ssize_t n = ::write(failure_fd, &exec_errno, sizeof exec_errno);
    ::_exit(kExitNotFound);
  }

  void Tell(const ControlMessage& message) {
    [[maybe_unused]] const ssize_t n =
        ::send(control_.ours.get(), &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  int NextTimeoutMs() const {
    int64_t next_ns = 0;
    for (const Helper* helper : {&recorder_, &relay_}) {
      if (helper->restart_at_ns == 0) continue;
      next_ns = next_ns == 0 ? helper->restart_at_ns : std::min(next_ns, helper->restart_at_ns);
    }
    if (next_ns == 0) return -1;
    return static_cast<int>(std::max<int64_t>(0, next_ns - base::MonotonicNs()) / base::kNsPerMs) +
           1;
  }

  // Waits for a signal or a message of the relay, at most `timeout_ms`, and deals with it.
  void HandleSignals(int timeout_ms) {
    pollfd polls[2] = {{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                       {.fd = relay_control_.ours.get(), .events = POLLIN, .revents = 0}};
    ::poll(polls, 2, timeout_ms);
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      if (info.ssi_signo == SIGCHLD) continue;
      // From the terminal (SI_KERNEL) the whole foreground group has it already.
      if (info.ssi_code != SI_KERNEL && training_pid_ > 0 && !training_status_) {
        ::kill(training_pid_, static_cast<int>(info.ssi_signo));
      }
    }
    ReadRelayMessages();
    Reap();
    RestartHelpers();
  }

  void ReadRelayMessages() {
    char message = 0;
    while (::recv(relay_control_.ours.get(), &message, 1, MSG_DONTWAIT) == 1) {
      if (message == kRelayDrained) relay_drained_ = true;
      const int stream = message - kRelayStreamClosed;
      if (stream < 0 || stream >= static_cast<int>(output_.streams.size())) continue;
      // The reader of our output is gone: let the training learn it as it would without us.
      int& from = output_.streams[static_cast<size_t>(stream)].from;
      if (from >= 0) ::close(std::exchange(from, -1));
    }
  }

  // Also reaps orphans of the training that were given to us as subreaper or pid 1.
  void Reap() {
    int status = 0;
    for (pid_t pid = ::waitpid(-1, &status, WNOHANG); pid > 0;
         pid = ::waitpid(-1, &status, WNOHANG)) {
      if (pid == training_pid_) {
        training_status_ = status;
      } else if (pid == recorder_.pid) {
        recorder_.Died(base::MonotonicNs());
        recorder_exit_ = status;
      } else if (pid == relay_.pid) {
        relay_.Died(base::MonotonicNs());
        if (WIFEXITED(status)) relay_.restart_at_ns = 0;  // every stream is at its end
      }
    }
  }

  void RestartHelpers() {
    const int64_t now_ns = base::MonotonicNs();
    if (training_status_) return;
    // A recorder that ended by itself has said why; only one that was killed is started again.
    if (recorder_.pid < 0 && recorder_exit_ && WIFEXITED(*recorder_exit_))
      recorder_.restart_at_ns = 0;
    if (recorder_.restart_at_ns != 0 && recorder_.restart_at_ns <= now_ns) StartRecorder();
    if (relay_.restart_at_ns != 0 && relay_.restart_at_ns <= now_ns) StartRelay();
  }

  // Output first, then the recorder's end; each bounded, so that nothing outlives the job.
  void Finish() {
    for (RelayStream& stream : output_.streams) {
      if (stream.from >= 0) ::close(std::exchange(stream.from, -1));
    }
    if (training_status_) {
      Tell({.kind = ControlMessage::Kind::kTrainingEnded,
            .pid = training_pid_,
            .wait_status = *training_status_});
    }
    ::shutdown(relay_control_.ours.get(), SHUT_WR);
    const int64_t relay_deadline_ns = base::MonotonicNs() + kRelayDrainNs;
    while (relay_.pid > 0 && !relay_drained_ && base::MonotonicNs() < relay_deadline_ns) {
      HandleSignals(20);
    }
    ::shutdown(control_.ours.get(), SHUT_WR);
    const int64_t deadline_ns = base::MonotonicNs() + kRecorderFinishNs;
    while (recorder_.pid > 0 && base::MonotonicNs() < deadline_ns) HandleSignals(20);
    if (recorder_.pid > 0) {
      ::kill(recorder_.pid, SIGKILL);
      std::fprintf(stderr,
                   "epochmeter: the recorder did not finish in time; %s is readable up to "
                   "its last second\n",
                   settings_.run_path.c_str());
    }
    ::unlink(settings_.socket_path.c_str());
  }

  int EndLikeTheTraining() {
    const int status = *training_status_;
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    const int signal = WTERMSIG(status);
    if (::getpid() == 1) return 128 + signal;
    const rlimit no_core{.rlim_cur = 0, .rlim_max = 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::signal(signal, SIG_DFL);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signal);
    ::sigprocmask(SIG_UNBLOCK, &one, nullptr);
    ::raise(signal);
    return 128 + signal;
  }

  const RunSettings& settings_;
  UniqueFd event_socket_, signals_;
  SocketPair control_, capture_, relay_control_;
  OutputPlan output_;
  sigset_t original_mask_{};
  Helper recorder_, relay_;
  bool recorder_was_started_ = false;
  bool relay_drained_ = false;
  pid_t training_pid_ = -1;
  std::optional<int> training_status_, recorder_exit_;
};

}  // namespace

std::string PythonFolder() {
  const auto usable = [](const std::string& folder) {
    return ::access((folder + "/epochmeter/_bootstrap/sitecustomize.py").c_str(), R_OK) == 0;
  };
  const char* given = std::getenv("EPOCHMETER_PYTHON_DIR");
  if (given != nullptr && usable(given)) return given;
  char self[4096];
  const ssize_t size = ::readlink("/proc/self/exe", self, sizeof self - 1);
  if (size <= 0) return {};
  std::string folder(self, static_cast<size_t>(size));
  folder.resize(folder.rfind('/'));
  for (const char* relative : {"/../share/epochmeter/python", "/../../python"}) {
    if (usable(folder + relative)) {
      char real[4096];
      return ::realpath((folder + relative).c_str(), real) != nullptr ? real : folder + relative;
    }
  }
  return {};
}

int ExecPlainly(const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  const int exec_errno = errno;
  std::fprintf(stderr, "epochmeter: cannot run %s: %s\n", words[0], std::strerror(exec_errno));
  return exec_errno == ENOENT ? kExitNotFound : kExitNotExecutable;
}

int Launch(const RunSettings& settings) { return Launcher(settings).Run(); }

}  // namespace epochmeter::cli
