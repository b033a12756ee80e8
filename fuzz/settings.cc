// SPDX-License-Identifier: Apache-2.0
// What users and launchers set.
//
// flags: words of a command line and variables, a NUL behind each. A command line is taken or an
// error with a reason; numbers of settings are inside their limits; a secret word is never told.
// environment: the environment of a process, a NUL behind each variable. A rank is a number of
// its own size, chosen GPUs are those that are there, each once.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/run_settings.h"
#include "cli/text_options.h"
#include "collect/job_choice.h"
#include "collect/rank_env.h"
#include "collect/visible_devices.h"
#include "fuzz/input.h"
#include "fuzz/scratch.h"
#include "fuzz/target.h"

namespace epochmeter::fuzz {
namespace {

constexpr std::string_view kNul("\0", 1);

// Set while the object lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

void CheckSettings(const cli::Arguments& arguments, const std::string& folder) {
  cli::Arguments here = arguments;
  // Never outside of our folder, whatever path was given.
  here.flags["dir"] = {folder};
  here.flags.erase("output");
  const auto settings = cli::MakeRunSettings(here);
  if (!settings.ok()) {
    EPM_CHECK(!settings.error().Message().empty());
    return;
  }
  EPM_CHECK(settings->interval_ns >= base::kNsPerSecond / 10);
  EPM_CHECK(settings->interval_ns <= 60 * base::kNsPerSecond);
  EPM_CHECK(settings->print_ns >= 0 && settings->record_for_ns >= 0);
}

void CheckRedaction(const std::vector<std::string>& words) {
  const auto redacted = cli::RedactCommand(words);
  EPM_CHECK(redacted.size() == words.size());
  std::vector<std::string> with_secret = words;
  with_secret.insert(with_secret.end(), {"--x", "--api-key=geheim1", "--token", "geheim2"});
  const auto hidden = cli::RedactCommand(with_secret);
  EPM_CHECK(hidden.size() == with_secret.size());
  // Of the last words only: those before them may hold the same text, which is no secret there.
  EPM_CHECK(hidden[words.size() + 1].find("geheim1") == std::string::npos);
  EPM_CHECK(hidden[words.size() + 3].find("geheim2") == std::string::npos);
}

void CheckCommandLine(const std::vector<std::string>& words, size_t which) {
  static const Scratch folder;
  const auto commands = cli::Commands();
  const cli::Command& command = commands[which % commands.size()];
  const auto arguments = cli::ParseArguments(command, words);
  if (!arguments.ok()) {
    EPM_CHECK(!arguments.error().Message().empty());
    return;
  }
  (void)cli::MakeTextOptions(*arguments);
  CheckSettings(*arguments, folder.path());
}

std::vector<collect::GpuIdentity> FourGpus() {
  std::vector<collect::GpuIdentity> gpus;
  for (const char* digit : {"0", "1", "2", "3"}) {
    const std::string uuid = std::string("GPU-1") + digit + "000000-0000-0000-0000-000000000000";
    gpus.push_back({.uuid = uuid, .bus_id = std::string("0000:1") + digit + ":00.0", .model = "H"});
  }
  gpus[2].mig.push_back({.uuid = "MIG-20000000-0000-0000-0000-000000000000",
                         .gpu_instance = 1,
                         .compute_instance = 0});
  return gpus;
}

}  // namespace

void FeedFlags(std::string_view bytes) {
  Input in(bytes);
  const size_t which = in.Byte();
  std::vector<std::string> values;
  for (size_t i = 0; i < 8; ++i) values.emplace_back(in.Until(kNul));
  static constexpr std::array kNames = {"EPOCHMETER",     "EPOCHMETER_INTERVAL", "EPOCHMETER_PRINT",
                                        "EPOCHMETER_FOR", "EPOCHMETER_LANG",     "COLUMNS",
                                        "HOME",           "EPOCHMETER_NAME"};
  std::vector<std::string> words;
  while (!in.done()) words.emplace_back(in.Until(kNul));
  {
    std::vector<std::unique_ptr<Variable>> set;
    for (size_t i = 0; i < kNames.size(); ++i) {
      if (!values[i].empty()) set.push_back(std::make_unique<Variable>(kNames[i], values[i]));
    }
    (void)cli::RecordingSwitchedOn();
    CheckCommandLine(words, which);
    CheckRedaction(words);
    (void)cli::IdentifyingEnvironment();
  }
  for (const std::string& word : words) (void)base::ParseDurationSeconds(word);
}

void FeedEnvironment(std::string_view bytes) {
  if (const auto rank = collect::RankOfEnviron(bytes)) {
    EPM_CHECK(rank->rank >= 0 && rank->local_rank.value_or(0) >= 0);
    EPM_CHECK(rank->world.value_or(1) >= 1);
  }
  static const std::vector<collect::GpuIdentity> gpus = FourGpus();
  const auto variables = collect::VisibleVariablesOf(bytes);
  for (const int branch : {0, 470, 580}) {
    const auto visible = collect::ResolveVisibleGpus(variables, gpus, branch);
    const std::set<size_t> once(visible.gpus.begin(), visible.gpus.end());
    EPM_CHECK(once.empty() || *once.rbegin() < gpus.size());
    EPM_CHECK(once.size() == visible.gpus.size()) << "a GPU stands twice";
  }
  collect::ProcStat stat;
  stat.key = {.pid = 7, .start_ticks = 1};
  const auto process = collect::DescribeJobProcess(stat, bytes.substr(0, 15), bytes);
  collect::JobChoice choice;
  const auto& answer = choice.Decide({&process, 1}, gpus, 580);
  EPM_CHECK(answer.gpus.empty() || *answer.gpus.rbegin() < gpus.size());
  (void)cli::IdentifyingEnvironment(bytes);
}

}  // namespace epochmeter::fuzz
