// SPDX-License-Identifier: Apache-2.0
// A run as rules, reports and exports see it. Definitions, events and text are in memory; values of
// series stay in a SeriesStore that may read them from the file on demand. Immutable once built;
// any number of threads may read unless the store says otherwise.
#pragma once

#include <bit>
#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/record.h"

namespace epochmeter::model {

// Both ends belong to it.
struct Interval {
  int64_t begin_ns = std::numeric_limits<int64_t>::min();
  int64_t end_ns = std::numeric_limits<int64_t>::max();
  bool Contains(int64_t t_ns) const { return begin_ns <= t_ns && t_ns <= end_ns; }
};

struct SeriesColumn {
  std::vector<int64_t> t_ns;  // not falling
  std::vector<double> value;  // same length
};

// Sums over the samples of an interval. A sample weighs the time since the sample before it in the
// whole series, at most the gap limit: after a longer hole it weighs one period only, so that means
// never bridge a gap. The first sample of a series weighs nothing.
struct Summary {
  uint64_t count = 0;
  int64_t t_first_ns = 0, t_last_ns = 0;
  double first = 0, last = 0, min = 0, max = 0;
  double sum = 0;
  double weighted_sum = 0;  // sum of value * weight in s
  double weight_s = 0;

  // Adds one sample, in time order.
  void Add(int64_t t_ns, double value, double weight_s);
  // Appends a later summary.
  void Append(const Summary& later);
  // Time-weighted mean; the plain one when no time is covered; nothing without samples.
  std::optional<double> Mean() const;
  bool operator==(const Summary&) const = default;
};
// Weight in s of a sample at `t_ns` whose predecessor in the series is at `previous_ns`.
double SampleWeightSeconds(int64_t previous_ns, int64_t t_ns, int64_t period_ns);

class SeriesStore {
 public:
  virtual ~SeriesStore() = default;
  virtual base::Result<Summary> Summarize(SeriesId series, Interval interval) const = 0;
  // The same for each of these series and each of these intervals, in that order: a store that has
  // its values in a file reads each part of it once.
  using SummaryTable = std::vector<std::vector<Summary>>;
  virtual base::Result<SummaryTable> SummarizeAll(const std::vector<SeriesId>& series,
                                                  const std::vector<Interval>& intervals) const;
  virtual base::Result<SeriesColumn> Read(SeriesId series, Interval interval) const = 0;
  // Damage met while values were read, which Run::losses therefore does not have.
  virtual std::vector<Loss> LossesFound() const { return {}; }
};

// Stands in a column where a step had no such number: a NaN of its own, because a loss that is NaN
// is known and the worst of news.
inline constexpr double kAbsentNumber = std::bit_cast<double>(uint64_t{0x7FF8'0000'0000'ABBE});
constexpr bool IsAbsent(double value) {
  return std::bit_cast<uint64_t>(value) == std::bit_cast<uint64_t>(kAbsentNumber);
}

// Stands for an epoch or a step whose number is not known; every other number may be a real one.
inline constexpr int64_t kNotKnown = std::numeric_limits<int64_t>::min();

// The steps of one process, in columns of equal length; kAbsentNumber where a step had no such
// number.
struct StepTable {
  std::vector<int64_t> t_ns;                                        // the end of the step
  std::vector<int64_t> epoch;                                       // kNotKnown when not known
  std::vector<int64_t> step;                                        // kNotKnown when not known
  std::map<std::string, std::vector<double>, std::less<>> columns;  // "duration_s", "scalar.loss"

  size_t size() const { return t_ns.size(); }
  void Add(const Event& event);
  // Null when no step had it.
  const std::vector<double>* Column(std::string_view name) const;
};

inline constexpr int32_t kNoRank = -1;

// A process of the training: its rank, or, without one, the process id that events then carry as
// the field "pid" (0 when they don't). Those with a rank have no pid here.
struct ProcessKey {
  // A rank alone is a key. NOLINTNEXTLINE(google-explicit-constructor)
  ProcessKey(int32_t its_rank = kNoRank, int64_t its_pid = 0) : rank(its_rank), pid(its_pid) {}
  int32_t rank;
  int64_t pid;
  // clang-tidy 14 sees a 0 in the default. NOLINTNEXTLINE(modernize-use-nullptr)
  auto operator<=>(const ProcessKey&) const = default;
};
ProcessKey ProcessOf(const Event& event);

struct Run {
  std::optional<RunInfo> info;
  std::vector<Anchor> anchors;      // beside info->anchor
  std::vector<EntityDef> entities;  // index = id
  std::vector<SeriesDef> series;    // index = id
  std::vector<SeriesState> states;
  std::vector<Event> events;  // all but steps, in order of arrival
  std::map<ProcessKey, StepTable> steps;
  std::vector<LogText> log;
  std::vector<Loss> losses;
  std::optional<RunEnd> end;
  Interval span{.begin_ns = 0, .end_ns = 0};  // of everything seen
  std::unique_ptr<SeriesStore> store;

  // The series of `entity` whose metric has this field name ("memory_used_bytes").
  std::optional<SeriesId> FindSeries(EntityId entity, std::string_view field) const;
  std::vector<const EntityDef*> EntitiesOf(Scope scope) const;
  // From the start of the recording to the training's end; `span` when one of them is not known.
  Interval Recorded() const;
  // UTC ns by the nearest anchor before; nothing without any anchor.
  std::optional<int64_t> WallNs(int64_t t_ns) const;
};

}  // namespace epochmeter::model
