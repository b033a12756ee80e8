// SPDX-License-Identifier: Apache-2.0
// Which rank wrote a log, by the names of its file and folders. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/log/engine.h"

namespace epochmeter::ingest::log {

// "log/workerlog.3", "rank_3/train.log", "log.txt.rank3", "attempt_0/3/stdout.log", "worker_3.log".
std::optional<int32_t> RankOfPath(std::string_view path);

// Sets the rank of each file that has none and whose name says one. Where several nodes' folders
// count from 0 again, ranks go on from folder to folder in the order of their names, with numbers
// as numbers. Returns what was assumed, a sentence each.
std::vector<std::string> NameRanks(std::vector<LogFile>* files);

}  // namespace epochmeter::ingest::log
