// SPDX-License-Identifier: Apache-2.0
// What rules judge by: a run and its worked-out report, the steps and phases of each rank in the
// order of time, and which of them are warm-up. Built once, immutable, borrows the run and report.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/limits.h"
#include "model/rank_events.h"
#include "model/report.h"
#include "model/run.h"

namespace epochmeter::diagnose {

// "paddle", "tensorflow" or "pytorch" for what a client calls its framework; empty for others.
std::string FrameworkName(std::string_view told);
// What the run's clients or allocators said last; empty when none did.
std::string FrameworkOf(const model::Run& run);

// One step event (or several steps that ran in one go, told together). Numbers that the event did
// not carry are model::kAbsentNumber, which is a NaN; epoch and step are model::kNotKnown.
struct TrainStep {
  int64_t begin_ns = 0, end_ns = 0;  // equal when nobody saw where it began
  double duration_s = model::kAbsentNumber;
  double data_wait_s = model::kAbsentNumber;
  double batch_size = model::kAbsentNumber;
  double steps = 1;  // how many it stands for
  int64_t epoch = model::kNotKnown, step = model::kNotKnown;
  size_t index = 0;  // in RankFacts::table, for scalars and other columns
  // In the first epoch when there are later ones with at least ten steps, else among the first ten
  // (or twentieth part) of all; or the first of an epoch; or beside a compilation. Never a fault.
  bool warm_up = false;
};

using model::PhaseSpan;

struct RankFacts {
  std::optional<int32_t> rank;
  std::optional<int64_t> pid;
  std::string name;       // "rank0", "process 4711", "training" when it is the only one
  std::string framework;  // "paddle", "tensorflow", "pytorch"; empty: not known
  const model::StepTable* table = nullptr;  // null without steps
  std::vector<TrainStep> steps;             // in the order of time, partial ones left out
  std::vector<PhaseSpan> phases;            // in the order of their begins
  std::vector<const model::EpochRow*> rows;
  std::vector<const model::Event*> events;  // all but steps, in the order of time
  std::vector<int32_t> gpus;                // its GPUs' indexes on this host; empty: not known
  // From train_begin (or the first thing seen) to train_end; to the end of the run without one.
  model::Interval training;
  bool ended = false;  // train_end was seen
  // Stretches of steps that follow one another, outside warm-up and phases: what to judge.
  std::vector<model::Interval> steady;
  double SteadySeconds() const;
};

// A value that is worked out when it is first asked for, once, whoever asks; any thread.
template <typename T>
class Lazy {
 public:
  template <typename Make>
  const T& Get(const Make& make) {
    const std::lock_guard lock(mutex_);
    if (!value_) value_ = make();
    return *value_;
  }

 private:
  std::mutex mutex_;
  std::optional<T> value_;
};

// What several rules go by (activity.h, stalls.h).
struct SharedFacts {
  Lazy<std::vector<model::Interval>> stalled, steady, working;
  Lazy<model::Message> little_work;
};

class Facts {
 public:
  // All three must outlive it.
  Facts(const model::Run& run, const model::Report& report, const Limits& limits);

  const model::Run& run() const { return run_; }
  const model::Report& report() const { return report_; }
  const Limits& limits() const { return limits_; }
  SharedFacts& shared() const { return *shared_; }
  const std::vector<RankFacts>& ranks() const { return ranks_; }
  // Length of the recording.
  double duration_s() const { return report_.duration_s; }
  // How many GPUs are the job's; 0 when none is known.
  size_t job_gpus() const;

  // Null when the entity has no such figure.
  const model::Curve* FindCurve(model::EntityId entity, std::string_view field) const;
  // The GPU with this index on the host; null when there is none.
  const model::EntityDef* Gpu(int32_t index) const;
  const model::Curve* GpuCurve(int32_t index, std::string_view field) const;
  const model::Curve* HostCurve(std::string_view field) const;
  // Of the training's process tree.
  const model::Curve* TreeCurve(std::string_view field) const;
  // Of the rank's allocator (its first device).
  const model::Curve* FrameworkCurve(const RankFacts& rank, std::string_view field) const;
  // The first in the scope that has the field.
  const model::Curve* FirstCurve(model::Scope scope, std::string_view field) const;

  // All samples of a series as recorded; empty when it has none or can't be read. Reads the file:
  // for a few series and short intervals, or where every sample counts.
  model::SeriesColumn Read(model::EntityId entity, std::string_view field,
                           model::Interval interval = {}) const;
  // Sums of a recorded series over all these intervals together, by every sample in them.
  model::Summary Over(model::EntityId entity, std::string_view field,
                      std::span<const model::Interval> intervals) const;

  // What evidence calls a curve: "gpu0 power_w", "host cpu_ratio", "rank1 allocated_bytes".
  std::string SeriesName(const model::Curve& curve) const;

 private:
  const model::Run& run_;
  const model::Report& report_;
  const Limits& limits_;
  std::vector<RankFacts> ranks_;
  std::unique_ptr<SharedFacts> shared_ = std::make_unique<SharedFacts>();
  std::map<model::EntityId, std::map<std::string_view, const model::Curve*, std::less<>>> curves_;
  std::map<model::EntityId, std::map<std::string_view, model::SeriesId, std::less<>>> series_;
};

// Sums of the curve's buckets that lie wholly inside one of `intervals`, or of its points where it
// is exact. Cheap; for a curve of a long run the ends are as coarse as a bucket.
model::Summary Sum(const model::Curve& curve, std::span<const model::Interval> intervals);

// `interval` less each of `holes`, in the order of time.
std::vector<model::Interval> Subtract(model::Interval interval, std::vector<model::Interval> holes);
double TotalSeconds(std::span<const model::Interval> intervals);

}  // namespace epochmeter::diagnose
