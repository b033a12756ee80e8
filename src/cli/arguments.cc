// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <CLI/CLI.hpp>
#include <cctype>
#include <cstdlib>
#include <memory>

#include "base/strings.h"

namespace epochmeter::cli {
namespace {

constexpr FlagSpec kCommonFlags[] = {
    {.name = "json", .value_name = "", .help = "print one JSON object", .kind = FlagKind::kSwitch},
    {.name = "help",
     .short_name = 'h',
     .value_name = "",
     .help = "show this help",
     .kind = FlagKind::kSwitch},
};

// "epoch-print" -> "EPOCHMETER_EPOCH_PRINT".
std::string EnvironmentName(std::string_view flag) {
  std::string name = "EPOCHMETER_";
  for (const char c : flag) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

std::string OptionNames(const FlagSpec& flag) {
  std::string names = "--" + std::string(flag.name);
  if (flag.short_name != 0) names = std::string("-") + flag.short_name + "," + names;
  return names;
}

// Collects what CLI11 found: its targets must outlive the parse and keep their addresses.
struct Targets {
  std::map<std::string, std::vector<std::string>> values;
  std::map<std::string, bool> switches;
};

void AddFlag(CLI::App& app, const FlagSpec& flag, Targets& targets) {
  const std::string name(flag.name);
  if (flag.kind == FlagKind::kSwitch) {
    app.add_flag(OptionNames(flag), targets.switches[name]);
    return;
  }
  CLI::Option* option = app.add_option(OptionNames(flag), targets.values[name]);
  option->expected(1)->allow_extra_args(false)->envname(EnvironmentName(flag.name));
  option->multi_option_policy(flag.kind == FlagKind::kRepeated ? CLI::MultiOptionPolicy::TakeAll
                                                               : CLI::MultiOptionPolicy::TakeLast);
}

// The words of ours and the command line that follows them.
struct SplitWords {
  std::vector<std::string> ours;
  std::vector<std::string> command;
};

const FlagSpec* FlagOfWord(const Command& command, const std::string& word) {
  for (const FlagSpec& flag : command.flags) {
    const bool is_short = flag.short_name != 0 && word == std::string("-") + flag.short_name;
    if (is_short || word == "--" + std::string(flag.name)) return &flag;
  }
  return nullptr;
}

// `run -o x python a.py --lr 1`: ours end at `--` or at the first word that is no flag or value.
SplitWords SplitCommandLine(const Command& command, const std::vector<std::string>& words) {
  size_t i = 0;
  while (i < words.size() && words[i] != "--" && base::StartsWith(words[i], "-")) {
    const FlagSpec* flag = FlagOfWord(command, words[i]);
    i += flag != nullptr && flag->kind != FlagKind::kSwitch ? 2 : 1;
  }
  i = std::min(i, words.size());
  const auto middle = words.begin() + static_cast<std::ptrdiff_t>(i);
  SplitWords split{.ours = {words.begin(), middle}, .command = {middle, words.end()}};
  if (!split.command.empty() && split.command.front() == "--") {
    split.command.erase(split.command.begin());
  }
  return split;
}

base::Error UsageError(const Command& command, std::string why) {
  return {.what = "wrong use of 'epochmeter " + std::string(command.name) + "'",
          .where = "",
          .why = std::move(why),
          .what_to_do = "see 'epochmeter " + std::string(command.name) + " --help'",
          .code = kUsageError};
}

base::Error UnknownFlag(const Command& command, const std::vector<std::string>& words,
                        const std::string& message) {
  std::vector<std::string> known;
  for (const FlagSpec& flag : command.flags) known.push_back("--" + std::string(flag.name));
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    if (!base::StartsWith(word, "--") || FlagOfWord(command, name) != nullptr) continue;
    const std::optional<std::string> nearest = base::NearestWord(name, known);
    if (nearest)
      return UsageError(command, "unknown flag " + name + ", did you mean " + *nearest + "?");
  }
  return UsageError(command, message);
}

Arguments Collect(const CLI::App& app, const Targets& targets,
                  std::vector<std::string> positionals) {
  Arguments arguments;
  for (const auto& [name, values] : targets.values) {
    if (app.get_option("--" + name)->count() > 0) arguments.flags[name] = values;
  }
  for (const auto& [name, on] : targets.switches) {
    if (on) arguments.flags[name] = {};
  }
  arguments.positionals = std::move(positionals);
  return arguments;
}

}  // namespace

std::optional<std::string> Arguments::Value(std::string_view name) const {
  const auto found = flags.find(name);
  if (found == flags.end() || found->second.empty()) return {};
  return found->second.back();
}

std::vector<std::string> Arguments::Values(std::string_view name) const {
  const auto found = flags.find(name);
  return found == flags.end() ? std::vector<std::string>() : found->second;
}

base::Result<Arguments> ParseArguments(const Command& command,
                                       const std::vector<std::string>& words) {
  SplitWords split{.ours = words, .command = {}};
  if (command.takes_command) split = SplitCommandLine(command, words);
  CLI::App app;
  app.set_help_flag();
  Targets targets;
  for (const FlagSpec& flag : command.flags) AddFlag(app, flag, targets);
  for (const FlagSpec& flag : kCommonFlags) AddFlag(app, flag, targets);
  std::vector<std::string> positionals;
  if (command.max_positionals != 0) app.add_option("words", positionals)->expected(0, 1 << 20);
  try {
    std::vector<std::string> reversed(split.ours.rbegin(), split.ours.rend());
    app.parse(std::move(reversed));
  } catch (const CLI::Error& error) {
    return UnknownFlag(command, split.ours, error.what());
  }
  Arguments arguments = Collect(app, targets, std::move(positionals));
  arguments.command = std::move(split.command);
  if (arguments.Has("help")) return arguments;
  const auto count = static_cast<int>(arguments.positionals.size());
  if (count < command.min_positionals) return UsageError(command, "something is missing");
  if (command.max_positionals >= 0 && count > command.max_positionals) {
    return UsageError(command, "too many words: '" + arguments.positionals.back() + "'");
  }
  return arguments;
}

std::string HelpText(const Command& command) {
  std::string text =
      "epochmeter " + std::string(command.name) + ": " + std::string(command.summary) + "\n\n";
  if (!command.examples.empty()) text += "Examples:\n" + std::string(command.examples) + "\n";
  text += "Usage: epochmeter " + std::string(command.name) + " " + std::string(command.usage) +
          "\n\nFlags:\n";
  const auto line = [&text](const FlagSpec& flag) {
    std::string left = flag.short_name != 0 ? std::string("-") + flag.short_name + ", " : "    ";
    left += "--" + std::string(flag.name);
    if (!flag.value_name.empty()) left += " " + std::string(flag.value_name);
    left.resize(std::max<size_t>(left.size() + 2, 30), ' ');
    text += "  " + left + std::string(flag.help) + "\n";
  };
  for (const FlagSpec& flag : command.flags) line(flag);
  for (const FlagSpec& flag : kCommonFlags) line(flag);
  return text + "Each flag with a value can also be set as EPOCHMETER_<FLAG>.\n";
}

std::string OverviewText() {
  std::string text =
      "epochmeter: the flight recorder of training runs\n\n"
      "  epochmeter run -- python train.py     record a training\n"
      "  epochmeter report                     the newest run, epoch by epoch\n\n"
      "Commands:\n";
  for (const Command& command : Commands()) {
    if (command.hidden) continue;
    std::string name(command.name);
    name.resize(12, ' ');
    text += "  " + name + std::string(command.summary) + "\n";
  }
  return text + "\n'epochmeter COMMAND --help' says more. 'epochmeter FILE' is a short report.\n";
}

}  // namespace epochmeter::cli
