// SPDX-License-Identifier: Apache-2.0
// What can be measured here, what can't and why, the one-line fix, and what each reading costs.
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "base/file.h"
#include "base/strings.h"
#include "cli/command_exec.h"
#include "cli/doctor_report.h"
#include "cli/probe_process.h"
#include "cli/text_options.h"
#include "cli/verbs.h"
#include "collect/checks/check_list.h"
#include "collect/proc_pid.h"

namespace epochmeter::cli {
namespace {

constexpr FlagSpec kFlags[] = {
    {.name = "dir", .value_name = "FOLDER", .help = "folder of runs [epochmeter-runs]"},
    {.name = "no-gpu", .value_name = "", .help = "leave the GPU alone", .kind = FlagKind::kSwitch},
    kLangFlag,
    kColorFlag,
    kAsciiFlag,
};

std::string HostName() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "this machine";
}

// For tests: a folder that stands for /. By environment, so that it is in no help text.
std::string RootFolder() {
  const char* root = std::getenv("EPOCHMETER_ROOT");
  return root == nullptr ? "" : root;
}

CheckResult RunCheck(const collect::CheckDef& check, const collect::CheckContext& context) {
  return {.id = std::string(check.id),
          .summary = std::string(check.summary),
          .facts = check.Run(context)};
}

bool IsThere(int32_t pid) {
  const auto stat = base::ReadFile(RootFolder() + "/proc/" + std::to_string(pid) + "/stat");
  const auto process = stat.ok() ? collect::ParseProcStat(*stat) : std::nullopt;
  return process && !process->ended();
}

void LookAtAll(const Arguments& arguments, DoctorReport& report) {
  report.probe =
      ProbeMachine({.root = RootFolder(), .pid = report.pid, .gpu = !arguments.Has("no-gpu")});
  const base::Result<std::string> sockets = SocketFolder();
  const collect::CheckContext context{.root = RootFolder(),
                                      .pid = report.pid,
                                      .run_folder = RunsFolder(arguments),
                                      .socket_error = sockets.ok() ? "" : sockets.error().Message(),
                                      .socket_folder = sockets.ok() ? *sockets : "",
                                      .python_folder = PythonFolder(),
                                      .probe = &report.probe};
  for (const collect::CheckDef& check : collect::Checks()) {
    report.checks.push_back(RunCheck(check, context));
  }
}

int Run(const Arguments& arguments) {
  int32_t pid = 0;
  if (!arguments.positionals.empty()) {
    const auto number = base::ParseInt(arguments.positionals.front());
    if (!number || *number <= 0 || *number > INT32_MAX) {
      return Fail(arguments,
                  {.what = "not a pid: " + arguments.positionals.front(),
                   .where = "",
                   .why = "",
                   .what_to_do = "give the pid of a process, or none",
                   .code = kUsageError},
                  kExitUsage);
    }
    pid = static_cast<int32_t>(*number);
  }
  base::Result<render::TextOptions> options = MakeTextOptions(arguments);
  if (!options.ok()) return Fail(arguments, options.error(), kExitUsage);
  options->redact = false;  // where folders are is what it is asked
  DoctorReport report{.host = HostName(), .pid = pid, .checks = {}, .probe = {}};
  report.looked = pid == 0 || IsThere(pid);
  if (report.looked) {
    LookAtAll(arguments, report);
  } else {
    // Figures of the machine would pass for answers about the process.
    report.probe.gpu_asked = false;
    report.checks.push_back(RunCheck(collect::kProcessCheck, {.root = RootFolder(), .pid = pid}));
  }
  if (arguments.json()) {
    PrintJson(DoctorJson(report));
  } else {
    PrintOut(DoctorText(report, *options));
  }
  return report.Count(model::CheckStatus::kFault) > 0 ? kExitConditionNotMet : kExitOk;
}

}  // namespace

const Command kDoctorCommand = {.name = "doctor",
                                .summary = "what can be measured here, what not and why",
                                .usage = "[flags] [PID]",
                                .examples = "  epochmeter doctor\n  epochmeter doctor 4711\n",
                                .flags = kFlags,
                                .max_positionals = 1,
                                .Run = Run};

const Command kProbeCommand = {.name = "internal-probe",
                               .summary = "reads sources for doctor",
                               .usage = "",
                               .examples = "",
                               .flags = kProbeFlags,
                               .Run = RunProbe,
                               .hidden = true};

}  // namespace epochmeter::cli
