// SPDX-License-Identifier: Apache-2.0
// Imports of text files line by line: reads the file twice and hands its lines to a format.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ingest/foreign_run.h"

namespace epochmeter::ingest {

// Understands the lines of one tool, one after the other. A new one is made for each reading.
class LineFormat {
 public:
  virtual ~LineFormat() = default;
  // A line without its end; may be empty.
  virtual void Line(std::string_view line) = 0;
};

struct LineSource {
  std::string_view tool;            // the series' source begins with it, "nvidia-smi dmon"
  double default_interval_s;        // the tool's own
  std::string_view nothing_usable;  // what to do when no number was found
  std::unique_ptr<LineFormat> (*Make)(ForeignRun& run, const ImportOptions& options);
};

base::Result<ImportSummary> ImportLines(const LineSource& source, const std::string& path,
                                        const ImportOptions& options, model::Sink& sink);

}  // namespace epochmeter::ingest
