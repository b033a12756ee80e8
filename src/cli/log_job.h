// SPDX-License-Identifier: Apache-2.0
// The logs of one job through the log engine: where they come from, and what is made of them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "base/result.h"
#include "diagnose/report_builder.h"
#include "export/log_rows.h"
#include "ingest/log/log_record.h"
#include "model/log_report.h"
#include "model/run.h"
#include "model/sink.h"

namespace epochmeter::cli {

struct LogJob {
  std::vector<std::string> inputs;  // files, folders, patterns; "-" is stdin
  bool follow = false;              // until the user ends it
  unsigned threads = 0;             // 1, or 2; 0: 2 for much to read where there are more cores
  // With follow, as in LogReading.
  std::function<bool()> after_batch;
  int output_fd = -1;
};

// What was read, and what could not be.
struct LogJobResult {
  model::LogReport report;
  model::Run run;  // of the log, thinned
  std::vector<std::string> warnings;
  bool partial = false;  // an input could not be read
};

// Reads the logs into a report with its findings. `records`, where there is one, gets the whole run
// as records as well; the caller ends it.
base::Result<LogJobResult> SumUpLogs(const LogJob& job, const diagnose::ReportOptions& options,
                                     model::Sink* records);
// Reads the logs into rows: those of several logs in the order of time where all records have one
// and they are not followed, else as they come. The caller finishes `rows`.
base::Result<LogJobResult> WriteLogRows(const LogJob& job, exporting::LogRowWriter* rows);

}  // namespace epochmeter::cli
