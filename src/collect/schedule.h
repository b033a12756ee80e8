// SPDX-License-Identifier: Apache-2.0
// Reads sources, each in its tier's period, on one thread.
//
// Instants are multiples of the interval on CLOCK_MONOTONIC, so that the sampler, the recorder and
// other nodes' recorders agree on them. A tick that comes late is read once, late; missed ones are
// not made up and show as a gap. A source whose mean cost exceeds 1 % of its period has its period
// doubled (and said as an event); one that fails is tried again after 1, 2, 4 ... 60 s. Each
// source's cost and success are series of the run (scope run, entity "recorder").
#pragma once

#include <memory>
#include <span>
#include <string>

#include "collect/source.h"

namespace epochmeter::collect {

class Schedule {
 public:
  // Borrows what `context` refers to. `process_label` ("recorder", "sampler") tells the
  // self-metrics of two schedules apart. Sources that can't be made now are retried.
  static std::unique_ptr<Schedule> Make(const SourceContext& context,
                                        std::span<const SourceDef> defs, std::string process_label);
  virtual ~Schedule() = default;

  // When RunDue should next be called.
  virtual int64_t NextDueNs() const = 0;
  // Reads every source that is due at `now_ns` and writes one Samples record per tick to the sink.
  virtual void RunDue(int64_t now_ns) = 0;
  // Reads every source now, slow tiers included: at epoch ends and at the end of the run. Calls
  // within 50 ms of the last one are joined with it.
  virtual void RunAllNow(int64_t now_ns) = 0;
};

}  // namespace epochmeter::collect
