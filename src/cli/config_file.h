// SPDX-License-Identifier: Apache-2.0
// The user's settings file: thresholds of rules, prices, energy and carbon of the site. In TOML,
// and read only by commands that work on finished runs: no file can keep `run` from starting.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "diagnose/report_builder.h"
#include "model/bill.h"

namespace epochmeter::cli {

inline constexpr FlagSpec kConfigFlag = {
    .name = "config", .value_name = "FILE", .help = "settings [~/.config/epochmeter/config.toml]"};

struct Config {
  std::string path;  // empty: no file
  diagnose::Limits limits;
  model::Rates rates;
};

// What stands in `text`, as far as it is good. Sections: [limits] with ids of the limit table,
// [prices] with [[prices.gpu]], [energy], [carbon]. What is unknown, of the wrong type or out of
// range is left out and told in `problems`, each with its line and what to do; a text that is no
// TOML changes nothing at all. `path` stands in the messages.
Config ParseConfig(std::string_view text, const std::string& path,
                   std::vector<base::Error>* problems);

// The file of --config or EPOCHMETER_CONFIG: it must be there, and the first problem in it is the
// result. Else $XDG_CONFIG_HOME/epochmeter/config.toml (~/.config): it may be absent, and problems
// are warnings on stderr. --rates FILE replaces prices, energy and carbon, and must be good.
base::Result<Config> LoadConfig(const Arguments& arguments);

// The same with --all-gpus, for building reports.
base::Result<diagnose::ReportOptions> LoadReportOptions(const Arguments& arguments);

}  // namespace epochmeter::cli
