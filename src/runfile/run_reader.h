// SPDX-License-Identifier: Apache-2.0
// Opens NAME.emr, with its tail while there is one, as a model::Run. Works on a file that is being
// written. Any thread; the Run it gives may be read by many threads.
//
// Damage is never an error: what can't be read is a Loss in Run::losses with the byte range and the
// reason, and everything else is there. An error means that nothing could be opened: no file, no
// permission, not a run file, a major version that this program doesn't know.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/run.h"

namespace epochmeter::runfile {

class FileSystem;

// Reads frame headers, definitions, events and text; values of series stay in the file and are read
// by Run::store on demand (means from stored sums, only the edges of an interval are decoded).
// Damage found that late is in Run::store->LossesFound().
base::Result<model::Run> OpenRun(const std::string& path, FileSystem* file_system = nullptr);
// The same without sealed events, steps and output, for who needs none of them: a run of months has
// millions. What the tail holds is there all the same.
base::Result<model::Run> OpenRunWithoutEvents(const std::string& path,
                                              FileSystem* file_system = nullptr);

// Reads everything and checks every checksum.
struct Verification {
  uint64_t file_bytes = 0;  // of both files
  uint64_t frames = 0;
  uint64_t chunk_sets = 0;
  uint64_t values = 0;  // samples that can be read
  bool finished = false;
  std::vector<model::Loss> losses;  // those of severity kInfo are no damage
  bool Intact() const;
};
base::Result<Verification> VerifyRun(const std::string& path, FileSystem* file_system = nullptr);

}  // namespace epochmeter::runfile
