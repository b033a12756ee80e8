// SPDX-License-Identifier: Apache-2.0
// Reads sources, each in its tier's period, on one thread.
//
// Instants are multiples of the period on CLOCK_MONOTONIC, so that the sampler, the recorder and
// other nodes' recorders agree on them. A tick that comes late is read once, late; missed ones are
// not made up and show as a gap. Samples carry the instant of the tick, or, when they are read more
// than 1 % of the interval after it, the time of reading.
//
// Sources share a budget: a part of one core for all that the process does, and 1 % of the time for
// all calls that hold a GPU driver's lock. When it does not allow for every tier's period, the
// dearest sources are read less often (budget.h), and again more often once a plan for three
// quarters of the budget has room; plans are made after 3 s and each 10 s. Vital sources are read
// at the run's interval in any case. A period that got longer is raised in the definitions of the
// source's series first, so that no mean takes the distance for a gap. GPUs that are read less than
// each tick take turns: a tick reads some of them.
//
// The ends of epochs are read out of the same budget, so that epochs of a second cost no more than
// those of an hour: what can't be paid for then is read in its own time.
//
// A source that fails is tried again after 1, 2, 4 ... 60 s, made anew after three failures in a
// row; its series are told to be in error until they have values again. Changes are events of kind
// source: name is the source, fields are state ("unavailable", "failing", "ok", "slowed",
// "restored", "off"), reason, period_s and cost_s, and "budget" with state "exceeded" when the
// vital sources alone pass it. Each source's cost and success, and how late ticks are, are series
// of the entity (scope run) named by the process label.
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
  // The same for the last time, whatever it costs.
  virtual void RunAtEnd(int64_t now_ns) = 0;
  // Reads every source now, whatever it costs.
  virtual void RunAllNow(int64_t now_ns) = 0;
};

// The metrics of a schedule itself, for `epochmeter list metrics`. Those of a source carry the
// label source=<its name> in the run.
std::span<const model::MetricDef> ScheduleMetrics();

}  // namespace epochmeter::collect
