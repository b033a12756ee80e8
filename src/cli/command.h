// SPDX-License-Identifier: Apache-2.0
// One row per verb. main looks the row up, arguments.cc parses by the row's flag table, and help
// and completion come from the same tables.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace epochmeter::cli {

// Exit codes of every command but `run`, which ends with the training's own.
enum ExitCode : int {
  kExitOk = 0,
  kExitConditionNotMet = 1,
  kExitUsage = 2,
  kExitUnreadable = 3,
  kExitPartial = 4,  // --strict and parts of the input were lost
  kExitInternal = 5,
  kExitRunFailed = 125,  // `run` failed before it could start the command
  kExitNotExecutable = 126,
  kExitNotFound = 127,
};

// Error::code of what the user wrote wrongly; errno values are positive.
inline constexpr int kUsageError = -1;
inline base::Error UsageError(std::string what, std::string what_to_do) {
  return {.what = std::move(what),
          .where = "",
          .why = "",
          .what_to_do = std::move(what_to_do),
          .code = kUsageError};
}

enum class FlagKind : uint8_t { kSwitch, kValue, kRepeated };

// `name` is the long name without dashes; `short_name` one letter or 0.
struct FlagSpec {
  std::string_view name;
  char short_name = 0;
  std::string_view value_name;  // empty for switches
  std::string_view help;
  FlagKind kind = FlagKind::kValue;
};

// What the user gave. A flag that was not given comes from EPOCHMETER_<NAME> where that is set.
struct Arguments {
  std::map<std::string, std::vector<std::string>, std::less<>> flags;
  std::vector<std::string> positionals;
  std::vector<std::string> command;  // after `--`, or from the first word that is no flag

  bool Has(std::string_view name) const { return flags.find(name) != flags.end(); }
  std::optional<std::string> Value(std::string_view name) const;
  std::vector<std::string> Values(std::string_view name) const;
  bool json() const { return Has("json"); }
};

struct Command {
  std::string_view name;
  std::string_view summary;   // one line
  std::string_view usage;     // after "epochmeter NAME": "[-o FILE] RUN"
  std::string_view examples;  // shown first in help
  std::span<const FlagSpec> flags;
  int min_positionals = 0;
  int max_positionals = 0;     // -1: any number
  bool takes_command = false;  // the rest after `--` is a command line, not ours to parse
  int (*Run)(const Arguments& arguments) = nullptr;
  bool hidden = false;  // our own processes; not in help
};

// All verbs, in the order of help. commands.cc is the one list.
std::span<const Command> Commands();
const Command* FindCommand(std::string_view name);

// Prints `error` for people on stderr, or with `json` as an object on stdout; gives `exit_code`.
int Fail(const Arguments& arguments, const base::Error& error, int exit_code);
// {"schema_version":1,"tool":{...},"data":DATA,"warnings":[...]}
std::string JsonEnvelope(std::string_view data_json, const std::vector<std::string>& warnings = {});
// The same on stdout, with a line end.
void PrintJson(std::string_view data_json, const std::vector<std::string>& warnings = {});
// Writes to stdout. Ends the process when that can't be: quietly when the reader went away, else
// with the reason and code 3.
void PrintOut(std::string_view text);

}  // namespace epochmeter::cli
