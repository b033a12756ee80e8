// SPDX-License-Identifier: Apache-2.0
// Looks the verb up and runs it; parses nothing itself.
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/command.h"

namespace epochmeter::cli {
namespace {

bool LooksLikeFile(const std::string& word) {
  return base::EndsWith(word, ".emr") || word.find('/') != std::string::npos;
}

int UnknownCommand(const std::string& word) {
  std::vector<std::string> names;
  for (const Command& command : Commands()) {
    if (!command.hidden) names.emplace_back(command.name);
  }
  const std::optional<std::string> nearest = base::NearestWord(word, names);
  const std::string hint = nearest ? "did you mean '" + *nearest + "'?" : "see 'epochmeter --help'";
  return Fail(
      {}, {.what = "unknown command '" + word + "'", .where = "", .why = "", .what_to_do = hint},
      kExitUsage);
}

int Main(std::vector<std::string> words) {
  if (words.empty()) {
    std::fputs(OverviewText().c_str(), stderr);
    return kExitUsage;
  }
  std::string verb = words.front();
  words.erase(words.begin());
  if (verb == "-h" || verb == "--help" || verb == "help") {
    PrintOut(OverviewText());
    return kExitOk;
  }
  if (verb == "-V" || verb == "--version") verb = "version";
  const Command* command = FindCommand(verb);
  if (command == nullptr && LooksLikeFile(verb)) {
    words.insert(words.begin(), verb);
    command = FindCommand("summary");
  }
  if (command == nullptr) return UnknownCommand(verb);
  base::Result<Arguments> arguments = ParseArguments(*command, words);
  if (!arguments.ok()) {
    return Fail({}, arguments.error(), command->takes_command ? kExitRunFailed : kExitUsage);
  }
  if (arguments->Has("help")) {
    PrintOut(HelpText(*command));
    return kExitOk;
  }
  return command->Run(*arguments);
}

}  // namespace
}  // namespace epochmeter::cli

int main(int argc, char** argv) {
  return epochmeter::cli::Main(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
