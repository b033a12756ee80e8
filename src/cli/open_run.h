// SPDX-License-Identifier: Apache-2.0
// Finding and opening run files for the commands that read them.
#pragma once

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "model/run.h"

namespace epochmeter::cli {

// One run file of a folder, newest first by name (run ids sort by time).
struct FoundRun {
  std::string path;
  std::string run_id;  // the file's name without .emr
  uint64_t bytes = 0;  // with its tail
  int64_t modified_wall_ns = 0;
  bool live_tail = false;  // a tail file is there: being recorded, or its recorder died
};
base::Result<std::vector<FoundRun>> FindRuns(const std::string& folder);

// The file that the arguments name, or the newest of the runs folder when they name none.
base::Result<std::string> RunPath(const Arguments& arguments);

// Opens the run that the arguments name; on failure prints why and gives the exit code.
struct OpenedRun {
  std::string path;
  model::Run run;
};
base::Result<OpenedRun> OpenNamedRun(const Arguments& arguments);

// Whether a recorder is writing the file now.
bool IsBeingWritten(const std::string& path);

// 4 with --strict when something of the file was lost, else 0.
int ExitCodeOf(const Arguments& arguments, const model::Run& run);

// A file to write a result to, or stdout for "-" and nothing.
class Output {
 public:
  // `input` is the run that is being read: writing over it (or its tail) is refused.
  static base::Result<std::unique_ptr<Output>> Open(const std::optional<std::string>& path,
                                                    const std::string& input);
  virtual ~Output() = default;
  virtual std::ostream& stream() = 0;
  // Nobody reads what is written any more (EPIPE): stop quietly.
  virtual bool reader_gone() const { return false; }
  // Errors of writing. A reader that went away (EPIPE) is none.
  virtual base::Result<> Close() = 0;
};

}  // namespace epochmeter::cli
