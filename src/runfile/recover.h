// SPDX-License-Identifier: Apache-2.0
// Closes a run file whose writer died.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/record.h"

namespace epochmeter::runfile {

class FileSystem;

struct Recovery {
  bool already_finished = false;
  uint64_t recovered_records = 0;   // that were in the tail only
  std::vector<model::Loss> losses;  // what the crash or damage cost; later readers find it too
  std::string saved_path;           // where the torn end of the main file is; empty: it had none
};

// Seals what the tail holds into the main file, ends the run with the reason "lost" and removes the
// tail. Throws nothing away: a tail with damaged parts is kept beside as NAME.emr.tail.damaged, an
// end of the main file that is no whole frame as NAME.emr.damaged, with a number appended where
// that exists. Refuses a file whose writer lives. Safe to repeat after a crash of its own.
base::Result<Recovery> RecoverRun(const std::string& path, FileSystem* file_system = nullptr);

}  // namespace epochmeter::runfile
