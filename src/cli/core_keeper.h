// SPDX-License-Identifier: Apache-2.0
// Keeps our processes on cores that the training does not use, where it leaves any: a training that
// is pinned to a part of the cores that we were started with has the rest of them for us. One that
// is not pinned shares all, as before. A training may pin itself later, so it is looked at again
// and again. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collect/cpu_affinity.h"
#include "model/env.h"
#include "model/sink.h"

namespace epochmeter::cli {

class CoreKeeper {
 public:
  // Remembers the calling process's cores as those that are ours to use. Borrows the sink.
  CoreKeeper(const model::Env& env, model::Sink& sink);

  // Follows a training from `now_ns` on.
  void Follow(int32_t training_pid, int64_t now_ns);
  // INT64_MAX when nothing is followed.
  int64_t NextDueNs() const { return next_ns_; }
  // Looks, moves recorder, sampler and relay when something has changed, and tells of it as an
  // event of kind source named "recorder.cores", with fields cpus and training_cpus.
  void Maintain(int64_t now_ns);

 private:
  std::vector<int32_t> OurProcesses() const;
  void MoveTo(const collect::CpuSet& cpus) const;

  const model::Env env_;
  model::Sink& sink_;
  collect::CpuSet allowed_;
  collect::CpuSet current_;
  int32_t training_pid_ = 0;
  int64_t next_ns_ = INT64_MAX;
  int looks_ = 0;
};

}  // namespace epochmeter::cli
