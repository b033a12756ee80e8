// SPDX-License-Identifier: Apache-2.0
// Run and report -> the run's row in a table of many. Pure; any thread.
#pragma once

#include <string_view>
#include <vector>

#include "model/report.h"
#include "model/run.h"
#include "model/run_row.h"

namespace epochmeter::diagnose {

// `path` and a state "running" are the caller's to set: a run does not know its file.
model::RunRow RowOf(const model::Run& run, const model::Report& report);

// By name, else by command, the kinds with most runs first. Unreadable runs are in none.
std::vector<model::RunProfile> ProfilesOf(const std::vector<model::RunRow>& rows);

// Sorts by one of RunSortKeys, that one first which a reader looks for: newest, longest, most
// wasteful, least used. Rows without the figure come last. False for an unknown key.
bool SortRows(std::string_view key, std::vector<model::RunRow>* rows);
std::vector<std::string_view> RunSortKeys();

}  // namespace epochmeter::diagnose
