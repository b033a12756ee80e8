// SPDX-License-Identifier: Apache-2.0
// `report` and `ls --long` of many run files: one table, and the profiles of their kinds.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace epochmeter::cli {

inline constexpr FlagSpec kSortFlag = {
    .name = "sort",
    .value_name = "KEY",
    .help =
        "of many runs: started, name, duration, utilization, sm, memory, wait, io, waste, "
        "energy, findings [started]"};

// Whether the words name more than one run file: several words, or a folder.
bool NameManyRuns(const std::vector<std::string>& places);

// Reads one run after the other and keeps a row of each. A file that can't be read is a row with
// the reason; only a place that holds no run at all fails. `places` are files, folders of them or
// run ids of the runs folder.
int ReportManyRuns(const Arguments& arguments, const std::vector<std::string>& places);

}  // namespace epochmeter::cli
