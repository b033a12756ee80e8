// SPDX-License-Identifier: Apache-2.0
// A run file of training logs, alone or together with a recording of the same job.
#pragma once

#include <optional>
#include <string>

#include "cli/log_job.h"

namespace epochmeter::cli {

struct LogRunOptions {
  bool force = false;               // replace an existing file
  std::optional<std::string> join;  // a run file
};

// Sums the logs up, and writes all their records to `path` beside. A file that could not be
// written whole is removed.
base::Result<LogJobResult> WriteRunOfLogs(const LogJob& job, const diagnose::ReportOptions& options,
                                          const std::string& path, const LogRunOptions& how);

}  // namespace epochmeter::cli
