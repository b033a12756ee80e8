// SPDX-License-Identifier: Apache-2.0
// Parsing of command lines by a command's flag table, and its help text.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"

namespace epochmeter::cli {

// Parses what follows the verb. An unknown flag, a missing value or a surplus word is an error
// whose `what_to_do` names the nearest flag. `-h` gives Arguments with the flag "help".
base::Result<Arguments> ParseArguments(const Command& command,
                                       const std::vector<std::string>& words);

std::string HelpText(const Command& command);
std::string OverviewText();

}  // namespace epochmeter::cli
