// SPDX-License-Identifier: Apache-2.0
// Reads sources, each in its tier's period, on one thread.
//
// Instants are multiples of the period on CLOCK_MONOTONIC, so that the sampler, the recorder and
// other nodes' recorders agree on them. A tick that comes late is read once, late; missed ones are
// not made up and show as a gap. Samples carry the instant of the tick, or, when they are read more
// than 1 % of the interval after it, the time of reading.
//
// A source whose usual cost (the median of 16 readings) exceeds 1 % of its period has its period
// doubled, up to 60 s, and halved again when the cost has fallen below a quarter of that. The cost
// is CPU time for host sources, so that a preempted recorder does not read less just when the
// machine is busy, and wall time for GPU sources, which hold the driver's lock while they wait.
//
// A source that fails is tried again after 1, 2, 4 ... 60 s, made anew after three failures in a
// row; its series are told to be in error until they have values again. Changes are events of kind
// source: name is the source, fields are state ("unavailable", "failing", "ok", "slowed",
// "restored"), reason, period_s and cost_s. Each source's cost and success, and how late ticks
// are, are series of the entity (scope run) named by the process label.
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

  // When RunDue should next be called. INT64_MAX without sources.
  virtual int64_t NextDueNs() const = 0;
  // Reads every source that is due at `now_ns` and writes one Samples record per tick to the sink.
  virtual void RunDue(int64_t now_ns) = 0;
  // Reads the sources of `at_epochs` now, whatever their tier: when an epoch begins or ends and at
  // the end of the run. Asked again too soon (20 ms; 100 ms with NVML) it reads once more when that
  // time is over, by NextDueNs and RunDue: the beginning of an epoch right after the end of another
  // counts too.
  virtual void RunAtEpoch(int64_t now_ns) = 0;
  // Reads every source now.
  virtual void RunAllNow(int64_t now_ns) = 0;
};

// The metrics of a schedule itself, for `epochmeter list metrics`. Those of a source carry the
// label source=<its name> in the run.
std::span<const model::MetricDef> ScheduleMetrics();

}  // namespace epochmeter::collect
