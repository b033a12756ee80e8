// SPDX-License-Identifier: Apache-2.0
// Tells of a disk that does not take records: on stderr when it begins and ends, and as an event
// `recorder.disk` whose time is the beginning. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "model/record.h"

namespace epochmeter::cli {

class DiskWatch {
 public:
  // How a flush of this duration went. Gives the event of a failure that is over: short breaks do
  // not end it.
  std::optional<model::Event> Note(const base::Result<>& flushed, int64_t flush_ns, int64_t now_ns);
  // At the end of the run: of a failure that lasts, or ended a moment ago.
  std::optional<model::Event> Last(int64_t now_ns) const;
  // Whether the last flush failed.
  bool failing() const { return since_ns_ != 0 && well_ns_ == 0; }

 private:
  void NoteFailed(const base::Error& error, int64_t flush_ns, int64_t now_ns);
  model::Event AsEvent(int64_t now_ns) const;

  int64_t since_ns_ = 0;  // 0: no failure
  int64_t last_ns_ = 0;   // of its failed flushes
  int64_t well_ns_ = 0;   // the first flush after the last failed one; 0: there was none yet
  int64_t attempts_ = 0;
  std::string reason_;
  int64_t told_ns_ = 0;  // when a failure was told last
  bool told_ = false;    // this one was
};

}  // namespace epochmeter::cli
