// SPDX-License-Identifier: Apache-2.0
#include "cli/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/strings.h"
#include "cli/helper_process.h"
#include "cli/messages.h"
#include "cli/recorder.h"
#include "cli/relay.h"
#include "cli/signals.h"

namespace epochmeter::cli {
namespace {

using base::UniqueFd;

// After the training's end: how long its last output, and then the end of the file, is waited for.
// Together they bound by how much we outlive the job.
constexpr int64_t kRelayDrainNs = base::kNsPerSecond;
constexpr int64_t kRecorderFinishNs = 2 * base::kNsPerSecond;
// The training's output waits while its relay is away.
constexpr int64_t kLongestRelayRestartNs = base::kNsPerSecond;

// As exec wants it; borrows the words.
std::vector<char*> ArgvOf(const std::vector<std::string>& command) {
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  return words;
}

void SetEnvironment(const RunSettings& settings) {
  ::setenv("EPOCHMETER_RUN_ID", settings.run_id.c_str(), 1);
  ::setenv("EPOCHMETER_SOCKET", settings.socket_path.c_str(), 1);
  char self[4096];
  const ssize_t size = ::readlink("/proc/self/exe", self, sizeof self - 1);
  if (size > 0)
    ::setenv("EPOCHMETER_BINARY", std::string(self, static_cast<size_t>(size)).c_str(), 0);
  if (settings.hooks) {
    ::unsetenv("EPOCHMETER_HOOKS");
  } else {
    ::setenv("EPOCHMETER_HOOKS", "0", 1);  // for epochmeter.start() in the script
  }
  const std::string python = PythonFolder();
  if (!settings.hooks || python.empty()) return;
  std::string path = python + "/epochmeter/_bootstrap";
  const char* before = std::getenv("PYTHONPATH");
  if (before != nullptr && *before != '\0') path += ":" + std::string(before);
  ::setenv("PYTHONPATH", path.c_str(), 1);
}

class Launcher {
 public:
  explicit Launcher(const RunSettings& settings) : settings_(settings) {
    relay_.longest_restart_ns = kLongestRelayRestartNs;
  }

  int Run() {
    if (const base::Result<> ready = SetUp(); !ready.ok()) return RunUnrecorded(ready.error());
    StartRecorder();
    if (const std::optional<int> failure = StartTraining()) return *failure;
    if (!output_.streams.empty()) StartRelay();
    while (!training_status_) Wait(NextTimeoutMs());
    Finish();
    return EndLikeTheTraining();
  }

 private:
  base::Result<> SetUp() {
    FillStandardDescriptors();
    EPM_TRY(signals_.Start());
    // Ours, so that datagrams wait in it while a recorder is being restarted.
    EPM_ASSIGN(event_socket_, BindEventSocket(settings_.socket_path));
    EPM_ASSIGN(control_, MakeSocketPair());
    EPM_ASSIGN(capture_, MakeSocketPair());
    EPM_ASSIGN(relay_control_, MakeSocketPair());
    if (settings_.capture_output) PlanCapture();
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    return {};
  }

  void PlanCapture() {
    base::Result<OutputPlan> plan = PlanOutput();
    if (plan.ok()) {
      output_ = std::move(plan).value();
    } else {
      std::fprintf(stderr, "epochmeter: %s; the output is not kept\n",
                   plan.error().Message().c_str());
    }
  }

  int RunUnrecorded(const base::Error& error) {
    std::fprintf(stderr, "epochmeter: %s; running without recording\n", error.Message().c_str());
    ::unlink(settings_.socket_path.c_str());
    signals_.Restore();
    return ExecPlainly(settings_.command);
  }

  void StartRecorder() {
    recorder_.Starting(base::MonotonicNs());
    const bool resume = std::exchange(recorder_was_started_, true);
    recorder_.pid = ::fork();
    if (recorder_.pid < 0) {
      recorder_was_started_ = resume;
      recorder_.Died(recorder_.started_ns);
    }
    if (recorder_.pid != 0) return;
    BecomeHelper(kRecorderName,
                 {event_socket_.get(), control_.theirs.get(), capture_.theirs.get()});
    PointToNull(STDOUT_FILENO);
    const RecorderChannels channels{.event_socket = event_socket_.get(),
                                    .control = control_.theirs.get(),
                                    .capture = capture_.theirs.get()};
    const RecorderStart start{.resume = resume,
                              .training_pid = training_status_ ? -1 : training_pid_};
    ::_exit(RunRecorder(settings_, channels, start));
  }

  void StartRelay() {
    relay_.Starting(base::MonotonicNs());
    relay_.pid = ::fork();
    if (relay_.pid < 0) relay_.Died(relay_.started_ns);
    if (relay_.pid != 0) return;
    std::vector<int> keep = {capture_.ours.get(), relay_control_.theirs.get()};
    for (const RelayStream& stream : output_.streams) keep.push_back(stream.from);
    BecomeHelper("epm-relay", keep);
    RunRelay(output_.streams,
             {.capture = capture_.ours.get(), .control = relay_control_.theirs.get()});
    ::_exit(0);
  }

  // Helpers stay in the terminal's process group, so that they may write to it.
  void BecomeHelper(const char* name, const std::vector<int>& keep) {
    ::prctl(PR_SET_NAME, name);
    IgnoreSignalsOfTheGroup();
    PointToNull(STDIN_FILENO);
    CloseAllBut(keep);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
  }

  // Nothing when the command runs, else the exit code that says why it does not.
  std::optional<int> StartTraining() {
    int ends[2];
    const bool piped = ::pipe2(ends, O_CLOEXEC) == 0;
    UniqueFd failure_out(piped ? ends[0] : -1), failure_in(piped ? ends[1] : -1);
    if (piped) training_pid_ = ::fork();
    if (piped && training_pid_ == 0) ExecTraining(failure_in.get());
    if (training_pid_ < 0) {
      Finish();
      return RunUnrecorded(base::SystemError("cannot start a process", "fork", errno));
    }
    failure_in.Reset();
    output_.child_stdout.Reset();
    output_.child_stderr.Reset();
    int exec_errno = 0;
    const ssize_t n = ::read(failure_out.get(), &exec_errno, sizeof exec_errno);
    if (n == static_cast<ssize_t>(sizeof exec_errno)) return ReportExecFailure(exec_errno);
    Tell({.kind = ControlMessage::Kind::kTrainingStarted, .pid = training_pid_, .wait_status = 0});
    return std::nullopt;
  }

  int ReportExecFailure(int exec_errno) {
    ::waitpid(std::exchange(training_pid_, -1), nullptr, 0);
    std::fprintf(stderr, "epochmeter: cannot run %s: %s\n", settings_.command.front().c_str(),
                 std::strerror(exec_errno));
    const int code = exec_errno == ENOENT ? kExitNotFound : kExitNotExecutable;
    training_status_ = code << 8;  // as waitpid would have it
    Finish();
    return code;
  }

  [[noreturn]] void ExecTraining(int failure_fd) {
    if (output_.child_stdout.valid()) ::dup2(output_.child_stdout.get(), STDOUT_FILENO);
    if (output_.child_stderr.valid()) ::dup2(output_.child_stderr.get(), STDERR_FILENO);
    SetEnvironment(settings_);
    signals_.Restore();
    // Who kills the command that it started kills the training, as without us.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const std::vector<char*> words = ArgvOf(settings_.command);
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
  void Wait(int timeout_ms) {
    pollfd polls[2] = {{.fd = signals_.fd(), .events = POLLIN, .revents = 0},
                       {.fd = relay_control_.ours.get(), .events = POLLIN, .revents = 0}};
    ::poll(polls, 2, timeout_ms);
    for (const SignalWatch::Received& received : signals_.Take()) PassOn(received);
    ReadRelayMessages();
    Reap();
    RestartHelpers();
  }

  // From the terminal the training has it already; from the training itself it is meant for others.
  void PassOn(const SignalWatch::Received& received) {
    if (received.from_kernel || received.sender == training_pid_) return;
    if (training_pid_ > 0 && !training_status_) ::kill(training_pid_, received.signal);
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
      const int64_t now_ns = base::MonotonicNs();
      if (pid == training_pid_) {
        training_status_ = status;
      } else if (pid == recorder_.pid) {
        recorder_.Died(now_ns);
        // One that ended by itself has said why; only one that was killed is started again.
        if (WIFEXITED(status)) recorder_.restart_at_ns = 0;
      } else if (pid == relay_.pid) {
        relay_.Died(now_ns);
        if (WIFEXITED(status)) relay_.restart_at_ns = 0;  // every stream is at its end
        if (WIFEXITED(status)) relay_drained_ = true;
      }
    }
  }

  void RestartHelpers() {
    const int64_t now_ns = base::MonotonicNs();
    if (recorder_.restart_at_ns != 0 && recorder_.restart_at_ns <= now_ns) StartRecorder();
    if (relay_.restart_at_ns != 0 && relay_.restart_at_ns <= now_ns) StartRelay();
  }

  // Output first, then the recorder's end; each bounded, so that nothing outlives the job. A helper
  // that is waiting for its restart gets it now: it has the end to write.
  void Finish() {
    for (Helper* helper : {&recorder_, &relay_}) {
      if (helper->restart_at_ns != 0) helper->restart_at_ns = base::MonotonicNs();
    }
    RestartHelpers();
    Tell({.kind = ControlMessage::Kind::kTrainingEnded,
          .pid = training_pid_,
          .wait_status = training_status_.value_or(0)});
    ::shutdown(relay_control_.ours.get(), SHUT_WR);
    const int64_t relay_deadline_ns = base::MonotonicNs() + kRelayDrainNs;
    const bool relayed = relay_.pid > 0 || relay_.restart_at_ns != 0;
    while (relayed && !relay_drained_ && base::MonotonicNs() < relay_deadline_ns) Wait(20);
    for (RelayStream& stream : output_.streams) {
      if (stream.from >= 0) ::close(std::exchange(stream.from, -1));
    }
    relay_.restart_at_ns = 0;
    ::shutdown(control_.ours.get(), SHUT_WR);
    AwaitRecorder();
    ::unlink(settings_.socket_path.c_str());
  }

  void AwaitRecorder() {
    const int64_t deadline_ns = base::MonotonicNs() + kRecorderFinishNs;
    while ((recorder_.pid > 0 || recorder_.restart_at_ns != 0) &&
           base::MonotonicNs() < deadline_ns) {
      Wait(20);
    }
    if (recorder_.pid <= 0) return;
    ::kill(recorder_.pid, SIGKILL);
    std::fprintf(stderr,
                 "epochmeter: the recorder did not answer for %s and was ended; %s has what had "
                 "reached the disk\n",
                 base::FormatDuration(base::SecondsFromNs(kRecorderFinishNs)).c_str(),
                 settings_.run_path.c_str());
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
  SignalWatch signals_;
  UniqueFd event_socket_;
  SocketPair control_, capture_, relay_control_;
  OutputPlan output_;
  Helper recorder_, relay_;
  bool recorder_was_started_ = false;
  bool relay_drained_ = false;
  pid_t training_pid_ = -1;
  std::optional<int> training_status_;
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
  const std::vector<char*> words = ArgvOf(command);
  ::execvp(words[0], words.data());
  const int exec_errno = errno;
  std::fprintf(stderr, "epochmeter: cannot run %s: %s\n", words[0], std::strerror(exec_errno));
  return exec_errno == ENOENT ? kExitNotFound : kExitNotExecutable;
}

int Launch(const RunSettings& settings) { return Launcher(settings).Run(); }

}  // namespace epochmeter::cli
