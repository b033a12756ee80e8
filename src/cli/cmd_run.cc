// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/file.h"
#include "base/strings.h"
#include "cli/launcher.h"
#include "cli/recorder.h"
#include "cli/sampler_process.h"
#include "cli/verbs.h"

namespace epochmeter::cli {
namespace {

constexpr FlagSpec kOutputFlag = {
    .name = "output",
    .short_name = 'o',
    .value_name = "PATH",
    .help = "run file or folder; takes {name} {time} {host} {rank} {job} {rand}"};
constexpr FlagSpec kDirFlag = {
    .name = "dir", .value_name = "FOLDER", .help = "folder of runs [epochmeter-runs]"};
constexpr FlagSpec kNameFlag = {
    .name = "name", .value_name = "NAME", .help = "name in the run id [the script's]"};
constexpr FlagSpec kIntervalFlag = {.name = "interval",
                                    .short_name = 'i',
                                    .value_name = "TIME",
                                    .help = "sampling tick, 100ms to 60s [1s]"};
constexpr FlagSpec kPrintFlag = {.name = "print",
                                 .value_name = "TIME",
                                 .help = "print a line per GPU so often, and one per epoch"};
constexpr FlagSpec kPrintFileFlag = {
    .name = "print-file", .value_name = "PATH", .help = "append those lines to a file as well"};
constexpr FlagSpec kTagFlag = {.name = "tag",
                               .value_name = "KEY=VALUE",
                               .help = "label of the run, repeatable",
                               .kind = FlagKind::kRepeated};
constexpr FlagSpec kNoGpuFlag = {
    .name = "no-gpu", .value_name = "", .help = "start no GPU sampler", .kind = FlagKind::kSwitch};
constexpr FlagSpec kForceFlag = {.name = "force",
                                 .value_name = "",
                                 .help = "replace an existing run file",
                                 .kind = FlagKind::kSwitch};
constexpr FlagSpec kQuietFlag = {.name = "quiet",
                                 .short_name = 'q',
                                 .value_name = "",
                                 .help = "say nothing on stderr but errors",
                                 .kind = FlagKind::kSwitch};
constexpr FlagSpec kRecordFlags[] = {
    kOutputFlag,
    kDirFlag,
    kNameFlag,
    kIntervalFlag,
    kPrintFlag,
    kPrintFileFlag,
    kTagFlag,
    {.name = "no-hooks",
     .value_name = "",
     .help = "leave Python alone: no epochs from hooks",
     .kind = FlagKind::kSwitch},
    {.name = "no-capture",
     .value_name = "",
     .help = "keep no copy of the output",
     .kind = FlagKind::kSwitch},
    kNoGpuFlag,
    kForceFlag,
    kQuietFlag,
};

// A recorder further up records this process already, by environment and process tree: a `run` in a
// script that is itself run by `run`. Its file is the one; an own -o asks for a second one.
bool RecordedAlready(const Arguments& arguments) {
  const char* path = std::getenv("EPOCHMETER_SOCKET");
  return path != nullptr && !arguments.Has("output") && SomebodyListens(path);
}

// What execvp would find: 0, or the errno for which it would fail. Asked before anything is made,
// so that a mistyped command leaves no run behind.
int FindProgram(const std::string& name) {
  const auto usable = [](const std::string& path) {
    struct stat info {};
    return ::access(path.c_str(), X_OK) == 0 && ::stat(path.c_str(), &info) == 0 &&
           S_ISREG(info.st_mode);
  };
  if (name.find('/') != std::string::npos) {
    if (usable(name)) return 0;
    return ::access(name.c_str(), F_OK) == 0 ? EACCES : ENOENT;
  }
  const char* folders = std::getenv("PATH");
  int found = ENOENT;
  for (const auto folder : base::Split(folders == nullptr ? "/bin:/usr/bin" : folders, ':')) {
    const std::string path = (folder.empty() ? "." : std::string(folder)) + "/" + name;
    if (usable(path)) return 0;
    if (::access(path.c_str(), F_OK) == 0) found = EACCES;
  }
  return found;
}

int Run(const Arguments& arguments) {
  if (arguments.command.empty()) {
    return Fail(arguments,
                {.what = "no command to run",
                 .where = "",
                 .why = "",
                 .what_to_do = "epochmeter run -- python train.py"},
                kExitRunFailed);
  }
  const base::Result<bool> on = RecordingSwitchedOn();
  if (!on.ok()) return Fail(arguments, on.error(), kExitRunFailed);
  if (!on.value() || RecordedAlready(arguments)) return ExecPlainly(arguments.command);
  // Fails as an exec does, and says so.
  if (FindProgram(arguments.command.front()) != 0) return ExecPlainly(arguments.command);
  const base::Result<RunSettings> settings = MakeRunSettings(arguments);
  if (!settings.ok() && settings.error().code == kUsageError) {
    return Fail(arguments, settings.error(), kExitRunFailed);
  }
  if (!settings.ok()) {
    Fail(arguments, settings.error(), kExitRunFailed);
    return ExecPlainly(arguments.command);
  }
  return Launch(*settings);
}

// A recorder of its own beside a running process: only /proc, NVML and the client socket.
int RunAttach(const Arguments& arguments) {
  const base::Result<bool> on = RecordingSwitchedOn();
  if (!on.ok()) return Fail(arguments, on.error(), kExitUsage);
  if (!on.value()) return kExitOk;
  const auto pid = base::ParseInt(arguments.positionals.front());
  if (!pid || *pid <= 0 || ::kill(static_cast<pid_t>(*pid), 0) != 0) {
    return Fail(
        arguments,
        base::SystemError("cannot attach to", arguments.positionals.front(), pid ? errno : EINVAL,
                          "give the pid of a running process of yours"),
        kExitUnreadable);
  }
  base::Result<RunSettings> settings = MakeRunSettings(arguments);
  if (!settings.ok()) return Fail(arguments, settings.error(), kExitUsage);
  const base::Result<std::string> command_line =
      base::ReadFile("/proc/" + std::to_string(*pid) + "/cmdline");
  if (command_line.ok()) {
    for (const auto word : base::Split(*command_line, '\0')) {
      if (!word.empty()) settings->command.emplace_back(word);
    }
  }
  if (const auto socket = arguments.Value("socket")) settings->socket_path = *socket;
  const base::Result<base::UniqueFd> events = BindEventSocket(settings->socket_path);
  if (!events.ok()) return Fail(arguments, events.error(), kExitUnreadable);
  for (const int signal : {SIGHUP, SIGPIPE}) ::signal(signal, SIG_IGN);
  for (const int signal : {SIGINT, SIGTERM}) ::signal(signal, RequestDetach);
  const int code =
      RunRecorder(*settings, {.event_socket = events->get(), .control = -1, .capture = -1},
                  {.resume = false, .training_pid = static_cast<pid_t>(*pid)});
  ::unlink(settings->socket_path.c_str());
  return code;
}

constexpr FlagSpec kAttachFlags[] = {
    kOutputFlag,
    kDirFlag,
    kNameFlag,
    kIntervalFlag,
    {.name = "socket", .value_name = "PATH", .help = "listen for client events here"},
    kPrintFlag,
    kPrintFileFlag,
    kTagFlag,
    kNoGpuFlag,
    kForceFlag,
    kQuietFlag,
};

}  // namespace

const Command kRunCommand = {
    .name = "run",
    .summary = "record a training",
    .usage = "[flags] -- COMMAND [ARGUMENTS]",
    .examples =
        "  epochmeter run -- python train.py\n"
        "  epochmeter run -o runs/ --print 5s -- torchrun --nproc-per-node 2 train.py\n",
    .flags = kRecordFlags,
    .takes_command = true,
    .Run = Run};

const Command kAttachCommand = {.name = "attach",
                                .summary = "record a process that is running",
                                .usage = "[flags] PID",
                                .examples = "  epochmeter attach 4711\n",
                                .flags = kAttachFlags,
                                .min_positionals = 1,
                                .max_positionals = 1,
                                .Run = RunAttach};

const Command kSamplerCommand = {.name = "internal-sampler",
                                 .summary = "the sampler process of a recorder",
                                 .usage = "",
                                 .examples = "",
                                 .flags = kSamplerFlags,
                                 .Run = RunSampler,
                                 .hidden = true};

}  // namespace epochmeter::cli
