// SPDX-License-Identifier: Apache-2.0
#include "cli/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/strings.h"
#include "cli/command_exec.h"
#include "cli/helper_process.h"
#include "cli/helper_watch.h"
#include "cli/messages.h"
#include "cli/recorder.h"
#include "cli/say.h"
#include "cli/signal_sorter.h"
#include "cli/signals.h"
#include "cli/training_output.h"

namespace epochmeter::cli {
namespace {

using base::UniqueFd;

// After the training's end: how long its last output is waited for, and the end of the file. The
// second holds for both: we outlive the job by no more.
constexpr int64_t kRelayDrainNs = base::kNsPerSecond;
constexpr int64_t kRecorderFinishNs = 2 * base::kNsPerSecond;
// Nobody passes the last output on after us: what is then in the pipes is gone.
constexpr int64_t kLastRelayDrainNs = 10 * base::kNsPerSecond;
constexpr int64_t kLongestRecorderRestartNs = 60 * base::kNsPerSecond;
// A recorder's loop turns each two seconds at least; only opening the file may take long.
constexpr int64_t kLongestSilenceNs = 10 * base::kNsPerSecond;
constexpr int64_t kLongestOpeningNs = 60 * base::kNsPerSecond;
constexpr int64_t kSilentAtTheEndNs = 5 * base::kNsPerSecond;
// Between two looks at the recorder's beat; while a helper stands still.
constexpr int64_t kLookNs = 5 * base::kNsPerSecond;
constexpr int64_t kStoppedLookNs = base::kNsPerSecond / 4;

// Shared with all helpers.
struct SharedPage {
  RecorderWords recorder;
  WriteJournal journals[kMostStreams];
};

class Launcher {
 public:
  explicit Launcher(const RunSettings& settings) : settings_(settings) {}

  int Run() {
    if (const base::Result<> ready = SetUp(); !ready.ok()) return RunUnrecorded(ready.error());
    StartRecorder();
    if (const std::optional<int> failure = StartTraining()) return *failure;
    StartRelay();
    while (!training_status_) Wait(NextWaitNs());
    Finish();
    return EndLikeTheTraining();
  }

 private:
  base::Result<> SetUp() {
    FillStandardDescriptors();
    EPM_TRY(signals_.Start());
    EPM_TRY(MakeSharedPage());
    RemoveAbandonedSockets(settings_.socket_path);
    // Ours, so that datagrams wait in it while a recorder is being restarted.
    EPM_ASSIGN(event_socket_, BindEventSocket(settings_.socket_path));
    EPM_ASSIGN(control_, MakeSocketPair());
    EPM_TRY(output_.SetUp(shared_->journals));
    if (settings_.capture_output) PlanCapture();
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    return {};
  }

  base::Result<> MakeSharedPage() {
    void* page = ::mmap(nullptr, sizeof(SharedPage), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return base::SystemError("cannot share memory", "mmap", errno);
    shared_ = new (page) SharedPage;
    return {};
  }

  void PlanCapture() {
    const base::Result<> captured = output_.Capture();
    if (captured.ok()) return;
    SayAtOnce("epochmeter: " + captured.error().Message() + "; the output is not kept");
  }

  int RunUnrecorded(const base::Error& error) {
    SayAtOnce("epochmeter: " + error.Message() + "; running without recording");
    if (event_socket_.valid()) ::unlink(settings_.socket_path.c_str());
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
    signals_.Restore();
    return ExecPlainly(settings_.command);
  }

  void StartRecorder() {
    const int64_t now_ns = base::MonotonicNs();
    const bool resume = std::exchange(recorder_was_started_, true);
    const RecorderStart start{.resume = resume,
                              .training_pid = training_status_ ? -1 : training_pid_,
                              .training_status = training_status_,
                              .replacement = recorder_.Replacement(now_ns)};
    shared_->recorder.beat_ns = 0;
    shared_->recorder.finishing = false;
    const pid_t pid = ::fork();
    if (pid == 0) {
      BecomeHelper(kRecorderName, {event_socket_.get(), control_.theirs.get(), output_.copies()});
      PointToNull(STDOUT_FILENO);
      const RecorderChannels channels{.event_socket = event_socket_.get(),
                                      .control = control_.theirs.get(),
                                      .capture = output_.copies(),
                                      .words = &shared_->recorder};
      ::_exit(RunRecorder(settings_, channels, start));
    }
    if (pid < 0) recorder_was_started_ = resume;
    recorder_.Started(pid, now_ns, awake_.now_ns());
  }

  void StartRelay() {
    const std::optional<ControlMessage> replacement = output_.StartRelay(awake_.now_ns());
    if (replacement) Tell(*replacement);
  }

  // Nothing when the command runs, else the exit code that says why it does not.
  std::optional<int> StartTraining() {
    int ends[2];
    const bool piped = ::pipe2(ends, O_CLOEXEC) == 0;
    UniqueFd failure_out(piped ? ends[0] : -1), failure_in(piped ? ends[1] : -1);
    if (piped) training_pid_ = ::fork();
    if (piped && training_pid_ == 0) ExecTraining(failure_in.get());
    if (training_pid_ < 0) {
      const base::Error error = base::SystemError("cannot start a process", "fork", errno);
      Finish();
      return RunUnrecorded(error);
    }
    failure_in.Reset();
    output_.CloseTrainingsEnds();
    int exec_errno = 0;
    const ssize_t n = ::read(failure_out.get(), &exec_errno, sizeof exec_errno);
    if (n == static_cast<ssize_t>(sizeof exec_errno)) return ReportExecFailure(exec_errno);
    Tell({.kind = ControlMessage::Kind::kTrainingStarted, .pid = training_pid_});
    return std::nullopt;
  }

  int ReportExecFailure(int exec_errno) {
    ::waitpid(std::exchange(training_pid_, -1), nullptr, 0);
    SayAtOnce("epochmeter: cannot run " + settings_.command.front() + ": " +
              std::strerror(exec_errno));
    const int code = exec_errno == ENOENT ? kExitNotFound : kExitNotExecutable;
    training_status_ = code << 8;  // as waitpid would have it
    Finish();
    return code;
  }

  [[noreturn]] void ExecTraining(int failure_fd) {
    output_.GiveToTraining();
    SetEnvironment(settings_);
    signals_.Restore();
    // Who kills the command that it started kills the training, as without us.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int exec_errno = ExecCommand(settings_.command);
    [[maybe_unused]] const ssize_t n = ::write(failure_fd, &exec_errno, sizeof exec_errno);
    ::_exit(kExitNotFound);
  }

  void Tell(const ControlMessage& message) {
    [[maybe_unused]] const ssize_t n =
        ::send(control_.ours.get(), &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  int64_t NextWaitNs() const {
    const int64_t now_ns = base::MonotonicNs();
    int64_t wait_ns = recorder_.alive() ? kLookNs : INT64_MAX;
    for (const HelperWatch* helper : {&recorder_, &output_.relay()}) {
      wait_ns = std::min(wait_ns, helper->WaitNs(now_ns, awake_.now_ns()));
      if (helper->stopped()) wait_ns = std::min(wait_ns, kStoppedLookNs);
    }
    if (sorter_.NextDueNs() != INT64_MAX) {
      wait_ns = std::min(wait_ns, std::max<int64_t>(0, sorter_.NextDueNs() - now_ns));
    }
    return wait_ns;
  }

  // Waits for a signal, a message of the relay or output that nobody else passes on, at most
  // `wait_ns`, and deals with it.
  void Wait(int64_t wait_ns) {
    polls_.assign(1, {.fd = signals_.fd(), .events = POLLIN, .revents = 0});
    output_.AddPolls(&polls_);
    const int64_t before_ns = base::MonotonicNs();
    const bool bounded = wait_ns != INT64_MAX;
    ::poll(polls_.data(), polls_.size(),
           bounded ? static_cast<int>(wait_ns / base::kNsPerMs) + 1 : -1);
    awake_.Waited(base::MonotonicNs() - before_ns, bounded ? wait_ns + base::kNsPerMs : -1);
    for (const SignalWatch::Received& received : signals_.Take()) Sort(received);
    for (const HelperMessage& seen : output_.Turn()) {
      sorter_.SeenByHelper(seen.value, seen.sender, base::MonotonicNs());
    }
    for (const int signal : sorter_.TakeDue(base::MonotonicNs())) PassOn(signal);
    Reap();
    WatchHelpers();
  }

  // From the terminal the training has it already; from the training itself it is meant for others.
  void Sort(const SignalWatch::Received& received) {
    if (received.signal == SIGWINCH) CopyWindowSizes(output_.streams());
    if (received.signal == SIGCONT) ContinueHelpers();
    if (received.from_kernel || received.sender == training_pid_) return;
    const bool harmless_twice = received.signal == SIGCONT || received.signal == SIGWINCH;
    if (harmless_twice || !output_.relay().alive() || output_.relay().stopped()) {
      PassOn(received.signal);
    } else {
      sorter_.Received(received.signal, received.sender, base::MonotonicNs());
    }
  }

  // The job goes on after a stop; whoever continued us alone meant all of it.
  void ContinueHelpers() {
    for (HelperWatch* helper : {&recorder_, &output_.relay()}) {
      if (helper->alive()) ::kill(helper->pid(), SIGCONT);
      if (helper->stopped()) helper->Stopped(base::MonotonicNs(), awake_.now_ns());
    }
  }

  void PassOn(int signal) {
    if (training_pid_ > 0 && !training_status_) ::kill(training_pid_, signal);
  }

  // Also reaps orphans of the training that were given to us as subreaper or pid 1.
  void Reap() {
    for (;;) {
      int status = 0;
      const pid_t pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);
      if (pid <= 0) return;
      const bool ended = WIFEXITED(status) || WIFSIGNALED(status);
      if (pid == training_pid_ && ended) {
        training_status_ = status;
      } else if (pid == recorder_.pid()) {
        NoteHelper(recorder_, status);
        // One that ended by itself has said why; only one that was killed is started again.
        if (WIFEXITED(status)) recorder_.Retire();
      } else if (pid == output_.relay().pid()) {
        NoteHelper(output_.relay(), status);
        if (ended) output_.NoteRelayEnd(status);
      }
    }
  }

  void NoteHelper(HelperWatch& helper, int status) {
    const int64_t now_ns = base::MonotonicNs();
    if (WIFSTOPPED(status)) {
      helper.Stopped(now_ns, awake_.now_ns());
      if (finishing_) helper.End(HelperFault::kStopped, now_ns);  // no time for grace
    } else if (WIFCONTINUED(status)) {
      helper.Continued();
    } else {
      helper.Died(status, now_ns);
      if (finishing_) helper.RestartNow(now_ns);
    }
  }

  void WatchHelpers() {
    const int64_t now_ns = base::MonotonicNs();
    const int64_t beat_ns = shared_->recorder.beat_ns;
    const bool finishing = shared_->recorder.finishing;
    recorder_.EndIfFaulty(now_ns, awake_.now_ns(), beat_ns,
                          finishing ? 0 : (beat_ns <= 0 ? kLongestOpeningNs : kLongestSilenceNs));
    output_.relay().EndIfFaulty(now_ns, awake_.now_ns(), 0, 0);
    if (recorder_.RestartIsDue(now_ns)) StartRecorder();
    if (output_.relay().RestartIsDue(now_ns)) StartRelay();
  }

  // Output first, then the recorder's end; each bounded, so that nothing outlives the job.
  void Finish() {
    const int64_t ended_ns = base::MonotonicNs();
    finishing_ = true;
    ReplaceWhatStandsStill(ended_ns);
    // Without a status there was no training of ours: the file doesn't say how it ended.
    if (training_status_) {
      Tell({.kind = ControlMessage::Kind::kTrainingEnded,
            .pid = training_pid_,
            .wait_status = *training_status_});
    }
    output_.TrainingEnded();
    while (!output_.AllPassedOn() && base::MonotonicNs() - ended_ns < DrainNs()) WaitBriefly();
    output_.Leave();
    ::shutdown(control_.ours.get(), SHUT_WR);
    AwaitRecorder(std::max(ended_ns + kRecorderFinishNs,
                           base::MonotonicNs() + kRecorderFinishNs - kRelayDrainNs));
    ::unlink(settings_.socket_path.c_str());
  }

  int64_t DrainNs() const {
    const bool last = ::getpid() == 1 || output_.StandsIn();
    return last ? kLastRelayDrainNs : kRelayDrainNs;
  }

  void WaitBriefly() { Wait(20 * base::kNsPerMs); }

  // A helper that waits for its restart gets it now, and one that stands still a successor: it has
  // the end to write.
  void ReplaceWhatStandsStill(int64_t now_ns) {
    const int64_t beat_ns = shared_->recorder.beat_ns;
    if (beat_ns > 0 && now_ns - beat_ns > kSilentAtTheEndNs) {
      recorder_.End(HelperFault::kSilent, beat_ns);
    }
    for (HelperWatch* helper : {&recorder_, &output_.relay()}) {
      if (helper->stopped()) helper->End(HelperFault::kStopped, now_ns);
      helper->RestartNow(now_ns);
    }
    WatchHelpers();
  }

  void AwaitRecorder(int64_t deadline_ns) {
    while ((recorder_.alive() || recorder_.waits_for_restart()) &&
           base::MonotonicNs() < deadline_ns) {
      WaitBriefly();
    }
    if (!recorder_.alive() && !recorder_.waits_for_restart()) return;
    if (recorder_.alive()) ::kill(recorder_.pid(), SIGKILL);
    SayAtOnce("epochmeter: the recorder did not answer for " +
              base::FormatDuration(base::SecondsFromNs(kRecorderFinishNs)) + " and was ended; " +
              settings_.run_path + " has what had reached the disk");
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
    ::kill(::getpid(), signal);  // raise(3) refuses those that the C library keeps for itself
    return 128 + signal;
  }

  const RunSettings& settings_;
  SignalWatch signals_;
  SignalSorter sorter_;
  UniqueFd event_socket_;
  SocketPair control_;
  TrainingOutput output_;
  SharedPage* shared_ = nullptr;  // for the life of the process
  std::vector<pollfd> polls_;     // kept, so that nothing is allocated while the training runs
  AwakeClock awake_;
  HelperWatch recorder_{HelperKind::kRecorder, kLongestRecorderRestartNs};
  bool recorder_was_started_ = false;
  bool finishing_ = false;
  pid_t training_pid_ = -1;
  std::optional<int> training_status_;
};

}  // namespace

int Launch(const RunSettings& settings) { return Launcher(settings).Run(); }

}  // namespace epochmeter::cli
