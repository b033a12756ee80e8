// SPDX-License-Identifier: Apache-2.0
// The records of logs as a file of rows: what `log -f csv` and `export LOG` write.
#pragma once

#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/log_job.h"

namespace epochmeter::cli {

// Writes "csv", "jsonl", "ecs" or "normal" rows to `path`, or to stdout; says on stderr what could
// not be read. Gives the exit code.
int WriteLogFile(const Arguments& arguments, const LogJob& job, const std::string& format,
                 const std::optional<std::string>& path);

// Whether this is a file of text, packed or not, and no run file.
bool IsLog(const std::string& path);

}  // namespace epochmeter::cli
