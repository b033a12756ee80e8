// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/strings.h"
#include "cli/command_exec.h"
#include "cli/launcher.h"
#include "cli/record_flags.h"
#include "cli/recorder.h"
#include "cli/sampler_process.h"
#include "cli/say.h"
#include "cli/verbs.h"

namespace epochmeter::cli {
namespace {

constexpr FlagSpec kRecordFlags[] = {
    kOutputFlag,
    kDirFlag,
    kNameFlag,
    kIntervalFlag,
    kCpuBudgetFlag,
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
    {.name = "no-output-progress",
     .value_name = "",
     .help = "look for no epochs and steps in the output",
     .kind = FlagKind::kSwitch},
    kNoGpuFlag,
    kAllGpusFlag,
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
    base::Error error = settings.error();
    error.what_to_do = "name another folder with -o; the training goes on without recording";
    SayAtOnce("epochmeter: " + error.Message());
    return ExecPlainly(arguments.command);
  }
  return Launch(*settings);
}

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

const Command kSamplerCommand = {.name = "internal-sampler",
                                 .summary = "the sampler process of a recorder",
                                 .usage = "",
                                 .examples = "",
                                 .flags = kSamplerFlags,
                                 .Run = RunSampler,
                                 .hidden = true};

}  // namespace epochmeter::cli
