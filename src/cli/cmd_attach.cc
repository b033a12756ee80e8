// SPDX-License-Identifier: Apache-2.0
// A recorder of its own beside a running process: only /proc, NVML and the client socket.
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "base/strings.h"
#include "cli/attach_target.h"
#include "cli/record_flags.h"
#include "cli/recorder.h"
#include "cli/verbs.h"
#include "collect/proc_pid.h"

namespace epochmeter::cli {
namespace {

constexpr FlagSpec kFlags[] = {
    kOutputFlag,
    kDirFlag,
    kNameFlag,
    kIntervalFlag,
    kCpuBudgetFlag,
    {.name = "for", .value_name = "TIME", .help = "leave it after so long [at its end]"},
    {.name = "socket", .value_name = "PATH", .help = "listen for client events here"},
    kPrintFlag,
    kPrintFileFlag,
    kTagFlag,
    kNoGpuFlag,
    kAllGpusFlag,
    kForceFlag,
    kQuietFlag,
};

std::string EnvironmentOf(const AttachTarget& target, const char* name) {
  if (!target.environment) return {};
  return std::string(collect::EnvironValue(*target.environment, name).value_or(""));
}

// A client that is recorded by a recorder it did not know of: its socket becomes another name of
// that recorder's, so that its events arrive there. False when that can't be.
bool JoinRecorder(const Arguments& arguments, const std::optional<Recording>& recording) {
  const auto socket = arguments.Value("socket");
  if (!socket || !recording || recording->socket_path.empty()) return false;
  return ::symlink(recording->socket_path.c_str(), socket->c_str()) == 0;
}

// A recorder is there already: another would get none of its events and cost the same again.
std::optional<base::Error> RecordedAlready(const AttachTarget& target,
                                           const std::optional<Recording>& recording) {
  const std::string pid = std::to_string(target.pid);
  if (recording) {
    const bool itself = recording->training_pid == target.pid;
    return base::Error{
        .what = "process " + pid + " is recorded already",
        .where = recording->run_path,
        .why = itself ? "" : "it belongs to process " + std::to_string(recording->training_pid),
        .what_to_do = recording->run_path.empty() ? "see `epochmeter ls`"
                                                  : "epochmeter report " + recording->run_path};
  }
  const std::string socket = EnvironmentOf(target, "EPOCHMETER_SOCKET");
  if (socket.empty() || !SomebodyListens(socket)) return std::nullopt;
  return base::Error{.what = "process " + pid + " is recorded already",
                     .where = "run " + EnvironmentOf(target, "EPOCHMETER_RUN_ID"),
                     .why = "its recorder listens at " + socket,
                     .what_to_do = "see `epochmeter ls` where it was started"};
}

// Where the training sends its events, when its own recorder is gone: a socket of ours that nobody
// listens to. Nothing otherwise.
std::string AbandonedSocket(const AttachTarget& target) {
  const std::string socket = EnvironmentOf(target, "EPOCHMETER_SOCKET");
  const std::string folder = socket.substr(0, socket.rfind('/') + 1);
  struct stat info {};
  const bool ours = !folder.empty() && ::stat(folder.c_str(), &info) == 0 &&
                    info.st_uid == ::geteuid() && (info.st_mode & 0077) == 0;
  return ours ? socket : std::string();
}

base::Result<base::UniqueFd> BindEvents(const Arguments& arguments, const AttachTarget& target,
                                        RunSettings& settings) {
  if (const auto socket = arguments.Value("socket")) {
    settings.socket_path = *socket;
    return BindEventSocket(settings.socket_path);
  }
  const std::string abandoned = AbandonedSocket(target);
  if (!abandoned.empty()) {
    struct stat info {};
    if (::lstat(abandoned.c_str(), &info) == 0 && S_ISSOCK(info.st_mode)) {
      ::unlink(abandoned.c_str());
    }
    base::Result<base::UniqueFd> events = BindEventSocket(abandoned);
    if (events.ok()) {
      settings.socket_path = abandoned;
      return events;
    }
  }
  return BindEventSocket(settings.socket_path);
}

void TellLimits(const Arguments& arguments, const AttachTarget& target,
                const RunSettings& settings) {
  if (settings.quiet || settings.json) return;
  for (const std::string& limit : target.limits) {
    std::fprintf(stderr, "epochmeter: %s\n", limit.c_str());
  }
  const bool sends =
      arguments.Has("socket") || settings.socket_path == EnvironmentOf(target, "EPOCHMETER_SOCKET");
  if (sends) return;
  std::fprintf(stderr,
               "epochmeter: no epochs and steps: it was not started by `epochmeter run`, and "
               "nothing in it sends events\n");
}

int Record(const Arguments& arguments, AttachTarget& target) {
  Arguments named = arguments;
  named.command = target.command;  // the run is named after it
  base::Result<RunSettings> settings = MakeRunSettings(named);
  if (!settings.ok()) {
    return Fail(arguments, settings.error(),
                settings.error().code == kUsageError ? kExitUsage : kExitUnreadable);
  }
  settings->attached = true;
  settings->training_environment = target.environment;
  settings->training_folder = target.working_folder;
  const base::Result<base::UniqueFd> events = BindEvents(arguments, target, *settings);
  if (!events.ok()) return Fail(arguments, events.error(), kExitUnreadable);
  TellLimits(arguments, target, *settings);
  for (const int signal : {SIGHUP, SIGPIPE}) ::signal(signal, SIG_IGN);
  for (const int signal : {SIGINT, SIGTERM}) ::signal(signal, RequestDetach);
  ::prctl(PR_SET_NAME, kRecorderName);  // by which another attach finds it
  const int code =
      RunRecorder(*settings, {.event_socket = events->get(), .control = -1, .capture = -1},
                  {.resume = false,
                   .training_pid = target.pid,
                   .training_fd = target.pidfd.get(),
                   .training_start_ticks = target.start_ticks});
  ::unlink(settings->socket_path.c_str());
  return code;
}

int Run(const Arguments& arguments) {
  const base::Result<bool> on = RecordingSwitchedOn();
  if (!on.ok()) return Fail(arguments, on.error(), kExitUsage);
  if (!on.value()) return kExitOk;
  const auto pid = base::ParseInt(arguments.positionals.front());
  if (!pid || *pid <= 0 || *pid > INT32_MAX) {
    return Fail(arguments,
                {.what = "not a pid: " + arguments.positionals.front(),
                 .where = "",
                 .why = "",
                 .what_to_do = "give the pid of a running process",
                 .code = kUsageError},
                kExitUsage);
  }
  base::Result<AttachTarget> target = LookAtTarget(static_cast<pid_t>(*pid));
  if (!target.ok()) return Fail(arguments, target.error(), kExitUnreadable);
  const std::optional<Recording> recording = FindRecordingOf(target->pid);
  if (JoinRecorder(arguments, recording)) return kExitOk;
  if (const auto recorded = RecordedAlready(*target, recording)) {
    return Fail(arguments, *recorded, kExitConditionNotMet);
  }
  return Record(arguments, *target);
}

}  // namespace

const Command kAttachCommand = {
    .name = "attach",
    .summary = "record a process that is running",
    .usage = "[flags] PID",
    .examples = "  epochmeter attach 4711\n  epochmeter attach --for 10min 4711\n",
    .flags = kFlags,
    .min_positionals = 1,
    .max_positionals = 1,
    .Run = Run};

}  // namespace epochmeter::cli
