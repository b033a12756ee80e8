// SPDX-License-Identifier: Apache-2.0
// A metric source: reads one part of a machine and gives values. A new source is one .cc with its
// MetricDefs, its class in the unnamed namespace and one SourceDef, plus a line in sources.cc.
//
// A source may not need root, run a command, write, block, or call CUDA. It gives what it could
// read: a value that is not known is left out of `out`, and the reason goes to the sink as a
// SeriesState (when it changes) or a Loss. Only a failure of the whole source is an error.
#pragma once

#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/result.h"
#include "model/env.h"
#include "model/metric.h"
#include "model/registry.h"
#include "model/sink.h"

namespace epochmeter::collect {

namespace nvml {
class Session;
}

// Which parts of a source (GPUs) are read now: those that fall on this slot when all are spread
// evenly over `slots` ticks. The default is all of them.
struct Turn {
  size_t slot = 0;
  size_t slots = 1;
  size_t parts = 1;
  bool Has(size_t part) const { return slots <= 1 || part * slots / parts == slot; }
  // How many of the parts fall on the slot.
  size_t Count() const {
    size_t count = 0;
    for (size_t part = 0; part < parts; ++part) count += Has(part) ? 1 : 0;
    return count;
  }
};

// How often a source is read, by its measured cost and by how fast its values change: `kTick` each
// tick of the run's interval; `kMid` each 2 s at most; `kSlow` each 10 s; `kRare` each 60 s.
enum class Tier : uint8_t { kTick, kMid, kSlow, kRare };

// Which processes belong to the run. Root pids are the training and what it registered.
struct JobScope {
  int32_t root_pid = 0;  // 0: no process to follow
  std::string cgroup;    // reserved for the cgroup sources; empty when unknown
  // Processes of ours: they and their descendants never count as the run's. The process that
  // reads is one of them anyhow.
  std::vector<int32_t> excluded_pids = {};
  // GPUs of others are read too.
  bool all_gpus = false;
  // GPUs that the training named to the recorder: UUIDs or bus ids. May grow while it runs.
  std::vector<std::string> named_gpus = {};
};

// Lives as long as the source. `nvml` is null for host sources.
struct SourceContext {
  const model::Env& env;
  model::Registry& registry;
  model::Sink& sink;
  int64_t tick_ns;  // the run's interval
  const JobScope& job;
  nvml::Session* nvml = nullptr;
  // Which process of ours reads, "recorder" or "sampler": the name of the entity (scope run) that
  // has its own cost. Schedule::Make sets it.
  std::string process_label = "recorder";
  // The part of one core that all sources of the schedule and what is done with their values may
  // take (schedule.h). Without a budget every source is read in its tier's period.
  double cpu_ratio = std::numeric_limits<double>::infinity();
};

class Source {
 public:
  virtual ~Source() = default;
  // Reads once. `out.t_ns` is the instant of the tick; values are appended. One thread, never
  // concurrently with any other source of the same schedule.
  virtual base::Result<> Sample(model::Samples& out) = 0;
  // Into how many parts a reading can be spread over ticks; 0 when it can't. May change.
  virtual size_t parts() const { return 0; }
  // Reads those parts only whose turn it is.
  virtual base::Result<> SampleTurn(model::Samples& out, const Turn& turn) {
    EPM_CHECK(turn.slots <= 1) << "a source without parts";
    return Sample(out);
  }
};

struct SourceDef {
  std::string_view name;     // "host.cpu"
  std::string_view summary;  // one line for `epochmeter list metrics`
  std::span<const model::MetricDef> metrics;
  Tier tier;
  // Whether it is read besides whenever an epoch begins or ends, so that its values are right per
  // epoch. Off for sources that are dear and whose values mean nothing at that very instant.
  bool at_epochs = true;
  // What every report rests on, and cheap: read at the run's interval whatever the budget is.
  bool vital = false;
  // When the budget does not allow for the tier's period: the longest one at which it is of use; 0
  // when it is of none. Of two sources that take the same, one that is worth twice as much gets
  // twice the time.
  int64_t longest_ns = 60 * base::kNsPerSecond;
  double worth = 1;
  // An error says why this machine can't have the source; it is reported once and the source is
  // tried again later (a driver may be loaded late).
  base::Result<std::unique_ptr<Source>> (*Make)(const SourceContext& context);
};

// The period of a tier for a run's interval.
constexpr int64_t TierPeriodNs(Tier tier, int64_t tick_ns) {
  const int64_t least = tier == Tier::kTick   ? 0
                        : tier == Tier::kMid  ? 2 * base::kNsPerSecond
                        : tier == Tier::kSlow ? 10 * base::kNsPerSecond
                                              : 60 * base::kNsPerSecond;
  return tick_ns > least ? tick_ns : least;
}

}  // namespace epochmeter::collect
