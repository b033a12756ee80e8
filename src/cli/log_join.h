// SPDX-License-Identifier: Apache-2.0
// A recording, and the logs of the same job on its clock. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/registry.h"
#include "model/run.h"
#include "model/sink.h"

namespace epochmeter::cli {

// All of a run as records, in the order of a run file, without its end; values an hour at a time.
// An error when its values could not be read.
base::Result<> CopyRun(const model::Run& run, model::Sink* out);

// Takes the records of LogRun and passes them on with the recording's clock and ids. Steps of
// processes whose steps the recording has itself are left out. Borrows all.
class LogJoiner : public model::Sink {
 public:
  LogJoiner(const model::Run& recording, model::Registry* registry, model::Sink* out);
  void Write(const model::Record& record) override;

  // After the last record: an error when the log has no times, or none while the recording ran.
  base::Result<> Check(const std::string& log) const;
  uint64_t steps() const { return steps_; }
  // What was left out, a sentence each.
  std::vector<std::string> Notes() const;

 private:
  int64_t MonoNs(int64_t wall_ns) const;
  int64_t Shift(int64_t t_ns);
  bool HasSteps(const model::Event& event) const;

  const model::Run& recording_;
  model::RemapSink out_;
  std::optional<int64_t> origin_wall_ns_;  // of the log's clock
  bool timed_ = true;
  int64_t first_ns_ = INT64_MAX, last_ns_ = INT64_MIN;
  uint64_t steps_ = 0, left_out_ = 0;
};

}  // namespace epochmeter::cli
