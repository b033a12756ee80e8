// SPDX-License-Identifier: Apache-2.0
#include "diagnose/figures.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <future>
#include <span>

#include "diagnose/curves.h"
#include "diagnose/own_gpus.h"
#include "diagnose/statistics.h"

namespace epochmeter::diagnose {
namespace {

using model::EntityDef;
using model::Interval;
using model::MetricKind;
using model::SeriesColumn;
using model::SeriesDef;
using model::Stat;
using model::StatTable;

constexpr std::array<std::string_view, 5> kGpuOrder = {
    "utilization_ratio", "memory_used_bytes", "power_w", "temperature_c", "sm_active_ratio"};
constexpr std::array<std::string_view, 3> kProcessOrder = {"rss_bytes", "read_bytes",
                                                           "written_bytes"};

double LengthSeconds(Interval interval) {
  return base::SecondsFromNs(interval.end_ns - interval.begin_ns);
}

uint64_t CountIn(const SeriesColumn& column, Interval interval) {
  const auto from = std::lower_bound(column.t_ns.begin(), column.t_ns.end(), interval.begin_ns);
  const auto to = std::upper_bound(column.t_ns.begin(), column.t_ns.end(), interval.end_ns);
  return from < to ? static_cast<uint64_t>(to - from) : 0;
}

// The interval in which the total of a counter is to be taken for a target.
std::optional<Interval> CounterInterval(const Target& target, const SeriesColumn& column) {
  if (!target.whole_run) return target.interval;
  return SampledPart(column, target.interval);
}

// The interval in which a rate by a counter is to be taken for a target.
std::optional<Interval> RateInterval(const Target& target, const SeriesColumn& column,
                                     int64_t period_ns) {
  if (target.whole_run) return SampledPart(column, target.interval);
  return CountedPart(column, period_ns, target.interval);
}

// A figure by counters that were taken over `part` of the target's interval.
Stat RateStat(const Target& target, const SeriesColumn& column, Interval part, double mean) {
  Stat stat;
  stat.count = CountIn(column, target.interval);
  stat.mean = mean;
  const double length_s = LengthSeconds(target.interval);
  if (length_s > 0) stat.coverage_ratio = std::min(1.0, LengthSeconds(part) / length_s);
  return stat;
}

// Whether parts of one are impossible: bytes, faults and their like.
bool IsWhole(const SeriesDef& series) {
  const std::string& unit = series.metric.unit;
  return unit == "By" || (!unit.empty() && unit.front() == '{');
}

// Only the kernel's CPU times are known to fall without a reset.
Falls FallsOf(const SeriesDef& series) {
  return series.metric.unit == "s" ? Falls::kJitter : Falls::kReset;
}

std::optional<CounterGrowth> GrowthFor(const Target& target, const SeriesDef& series,
                                       const SeriesColumn& column) {
  const std::optional<Interval> interval = CounterInterval(target, column);
  if (!interval) return {};
  return GrowthOf(column, series.period_ns, *interval, FallsOf(series));
}

// A figure of one series; nothing when the interval has none. `stats` are of the column.
std::optional<Stat> FigureOf(const SeriesDef& series, const SeriesColumn& column,
                             const Target& target, IntervalStats* stats) {
  if (series.metric.kind == MetricKind::kCounter) {
    const std::optional<CounterGrowth> growth = GrowthFor(target, series, column);
    if (!growth) return {};
    Stat stat;
    stat.total = growth->value;
    stat.at_least = growth->at_least;
    stat.count = CountIn(column, target.interval);
    if (IsWhole(series)) stat.total = std::round(*stat.total);
    return stat;
  }
  Stat stat = stats->Of(target.interval);
  if (stat.count == 0) return {};
  return stat;
}

// The series of an entity: those named in `order` first, then gauges and peaks, then counters.
// States have no figures.
std::vector<const SeriesDef*> SeriesOf(const model::Run& run, model::EntityId entity,
                                       std::span<const std::string_view> order) {
  std::vector<const SeriesDef*> list;
  for (const SeriesDef& series : run.series) {
    const bool wanted = series.entity == entity && series.metric.kind != MetricKind::kState &&
                        !series.metric.field.empty();
    if (wanted) list.push_back(&series);
  }
  const auto place = [&](const SeriesDef* series) {
    const auto at = std::find(order.begin(), order.end(), series->metric.field);
    const bool counter = series->metric.kind == MetricKind::kCounter;
    return at != order.end() ? at - order.begin()
                             : static_cast<std::ptrdiff_t>(order.size()) + (counter ? 1 : 0);
  };
  std::stable_sort(list.begin(), list.end(),
                   [&](const SeriesDef* a, const SeriesDef* b) { return place(a) < place(b); });
  return list;
}

const Stat* FindStat(const StatTable& table, std::string_view field) {
  for (const auto& [name, stat] : table) {
    if (name == field) return &stat;
  }
  return nullptr;
}

// Whether the samples behind a figure leave out no more than a tenth of the interval, or one and a
// half periods at its ends, and never more than half of it: one sample is no interval.
bool Covers(const Stat& stat, Interval interval, int64_t period_ns) {
  const double length_s = LengthSeconds(interval);
  const double covered = stat.coverage_ratio.value_or(0);
  const double missing_s = (1 - covered) * length_s;
  const double ends_s = 1.5 * base::SecondsFromNs(period_ns);
  return covered >= 0.5 && missing_s <= std::max(0.1 * length_s, ends_s);
}

// Drivers renew the energy counter each 10 to 100 ms; over less than ten of those steps its
// difference may be off by a tenth, and 0 for a run of a moment.
bool LongEnoughForCounter(Interval interval) { return LengthSeconds(interval) >= 1.0; }

// The growth of an energy counter as the energy of a target. Nothing across a reset, when the
// counter stood still (it is dead, or the time too short for it), and when the readings cover too
// little of a whole run: energy is compared and summed, so a part of it must not pass for all.
void SetEnergyFromCounter(const Target& target, const SeriesColumn& column, int64_t period_ns,
                          const Stat& stat, model::GpuStats* gpu) {
  if (stat.at_least || stat.total.value_or(0) <= 0) return;
  if (target.whole_run) {
    const std::optional<Interval> part = SampledPart(column, target.interval);
    if (!part || !Covers(RateStat(target, column, *part, 0), target.interval, period_ns)) return;
  }
  gpu->energy_j = stat.total;
  gpu->energy_source = "counter";
}

void SetEnergyFromPower(const Target& target, int64_t period_ns, model::GpuStats* gpu) {
  const Stat* power = FindStat(gpu->stats, "power_w");
  if (power == nullptr || !power->mean || !Covers(*power, target.interval, period_ns)) return;
  gpu->energy_j = *power->mean * LengthSeconds(target.interval);
  gpu->energy_source = "power_integral";
}

// Fills the GPU at `place` of each target.
void AddGpu(const SeriesReader& reader, const EntityDef& entity, size_t place,
            const std::vector<Target>& targets) {
  int64_t power_period_ns = 0;
  for (const SeriesDef* series : SeriesOf(reader.run(), entity.id, kGpuOrder)) {
    const SeriesColumn column = reader.Read(series->id);
    IntervalStats stats(column, series->period_ns);
    if (series->metric.field == "power_w") power_period_ns = series->period_ns;
    for (const Target& target : targets) {
      model::GpuStats& gpu = (*target.gpus)[place];
      const std::optional<Stat> stat = FigureOf(*series, column, target, &stats);
      if (!stat) continue;
      if (series->metric.field == "energy_j") {
        SetEnergyFromCounter(target, column, series->period_ns, *stat, &gpu);
      } else {
        gpu.stats.emplace_back(series->metric.field, *stat);
      }
    }
  }
  for (const Target& target : targets) {
    model::GpuStats& gpu = (*target.gpus)[place];
    if (!gpu.energy_j || !LongEnoughForCounter(target.interval)) {
      SetEnergyFromPower(target, power_period_ns, &gpu);
    }
  }
}

// The series with this field of the first entity in the scope that has it.
const SeriesDef* FindInScope(const model::Run& run, model::Scope scope, std::string_view field) {
  for (const EntityDef* entity : run.EntitiesOf(scope)) {
    if (const auto id = run.FindSeries(entity->id, field)) return &run.series[*id];
  }
  return nullptr;
}

constexpr std::array<CpuMode, 8> kCpuModes = {{{"cpu_user_s", true},
                                               {"cpu_nice_s", true},
                                               {"cpu_system_s", true},
                                               {"cpu_irq_s", true},
                                               {"cpu_softirq_s", true},
                                               {"cpu_steal_s", true},
                                               {"cpu_idle_s", false},
                                               {"cpu_iowait_s", false}}};

// Busy and all CPU seconds of a target over `part`, as far as they are known.
struct CpuSums {
  std::optional<Interval> part;
  double busy_s = 0;
  double all_s = 0;
};

void AddCpuRatio(const SeriesReader& reader, const std::vector<Target>& targets) {
  const SeriesDef* idle = FindInScope(reader.run(), model::Scope::kHost, "cpu_idle_s");
  if (idle == nullptr) return;
  const SeriesColumn times = reader.Read(idle->id);
  std::vector<CpuSums> sums(targets.size());
  for (size_t i = 0; i < targets.size(); ++i) {
    sums[i].part = RateInterval(targets[i], times, idle->period_ns);
  }
  for (const CpuMode& mode : kCpuModes) {
    const SeriesDef* series = FindInScope(reader.run(), model::Scope::kHost, mode.field);
    if (series == nullptr) continue;
    const SeriesColumn column = reader.Read(series->id);
    for (CpuSums& sum : sums) {
      if (!sum.part) continue;
      const auto delta = CounterDelta(column, series->period_ns, *sum.part);
      if (!delta) sum.part.reset();
      sum.all_s += delta.value_or(0);
      if (mode.busy) sum.busy_s += delta.value_or(0);
    }
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    if (!sums[i].part || sums[i].all_s <= 0) continue;
    targets[i].host->emplace_back(
        "cpu_ratio", RateStat(targets[i], times, *sums[i].part, sums[i].busy_s / sums[i].all_s));
  }
}

void AddUsed(const SeriesReader& reader, std::string_view total_field, std::string_view free_field,
             std::string_view used_field, const std::vector<Target>& targets) {
  const SeriesDef* total = FindInScope(reader.run(), model::Scope::kHost, total_field);
  const SeriesDef* free = FindInScope(reader.run(), model::Scope::kHost, free_field);
  if (total == nullptr || free == nullptr) return;
  const SeriesColumn used = UsedOf(reader.Read(total->id), reader.Read(free->id));
  IntervalStats stats(used, free->period_ns);
  for (const Target& target : targets) {
    const Stat stat = stats.Of(target.interval);
    if (stat.count > 0) target.host->emplace_back(used_field, stat);
  }
}

void AddCores(const SeriesDef& series, const SeriesColumn& column,
              const std::vector<Target>& targets) {
  for (const Target& target : targets) {
    const std::optional<Interval> part = RateInterval(target, column, series.period_ns);
    if (!part || LengthSeconds(*part) <= 0) continue;
    const std::optional<double> delta = CounterDelta(column, series.period_ns, *part);
    if (!delta) continue;
    target.process->emplace_back("cpu_cores",
                                 RateStat(target, column, *part, *delta / LengthSeconds(*part)));
  }
}

bool IsOfTarget(const EntityDef& entity, const Target& target, size_t entities) {
  // Further devices of a rank have the label; their figures would stand under the same names.
  if (!Find(entity.labels, "device").empty()) return false;
  const std::string_view label = Find(entity.labels, "rank");
  if (target.rank && !label.empty()) return label == std::to_string(*target.rank);
  const std::string_view pid = Find(entity.labels, "pid");
  if (target.pid && !pid.empty()) return pid == std::to_string(*target.pid);
  return entities == 1;  // without names, only one allocator can be meant
}

}  // namespace

SeriesColumn SeriesReader::Read(model::SeriesId id) const {
  const SeriesDef& series = run_.series[id];
  if (run_.store == nullptr) return {};
  base::Result<SeriesColumn> column = run_.store->Read(id, {});
  if (column.ok()) {
    if (!curves_[id]) curves_[id] = CurveOf(series, column.value(), run_.span);
    return std::move(column).value();
  }
  if (curves_[id]) return {};
  curves_[id].emplace();
  const bool has_entity = series.entity < run_.entities.size();
  const std::string entity = has_entity ? run_.entities[series.entity].name + " " : "";
  model::NotMeasured item{.subject = entity + series.metric.field,
                          .reason = column.error().Message()};
  // In an order of their own, whichever thread is first.
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto at = std::upper_bound(
      unreadable_->begin(), unreadable_->end(), item.subject,
      [](const std::string& subject, const auto& other) { return subject < other.subject; });
  unreadable_->insert(at, std::move(item));
  return {};
}

std::vector<model::Curve> SeriesReader::TakeCurves() const {
  std::vector<model::Curve> taken;
  for (std::optional<model::Curve>& curve : curves_) {
    if (curve && !curve->points.t_ns.empty()) taken.push_back(std::move(*curve));
  }
  return taken;
}

std::span<const CpuMode> CpuModes() { return kCpuModes; }

SeriesColumn UsedOf(const SeriesColumn& total, const SeriesColumn& free) {
  SeriesColumn used;
  size_t at = 0;
  for (size_t i = 0; i < free.t_ns.size(); ++i) {
    while (at < total.t_ns.size() && total.t_ns[at] <= free.t_ns[i]) ++at;
    if (at == 0) continue;
    used.t_ns.push_back(free.t_ns[i]);
    used.value.push_back(total.value[at - 1] - free.value[i]);
  }
  return used;
}

void AddGpuFigures(const SeriesReader& reader, const std::vector<Target>& targets) {
  std::vector<const EntityDef*> gpus = reader.run().EntitiesOf(model::Scope::kGpu);
  std::stable_sort(gpus.begin(), gpus.end(), [](const EntityDef* a, const EntityDef* b) {
    // One without an index comes last.
    return static_cast<uint32_t>(GpuIndex(*a)) < static_cast<uint32_t>(GpuIndex(*b));
  });
  for (const Target& target : targets) {
    for (const EntityDef* gpu : gpus) {
      target.gpus->push_back({.gpu = GpuIndex(*gpu),
                              .uuid = std::string(Find(gpu->labels, "uuid")),
                              .of_job = {},
                              .stats = {},
                              .energy_j = {},
                              .energy_source = {}});
    }
  }
  // Two threads. Each GPU has series and places of its own, written by the one that drew it.
  std::atomic<size_t> next = 0;
  const auto add = [&] {
    for (size_t i = next++; i < gpus.size(); i = next++) AddGpu(reader, *gpus[i], i, targets);
  };
  std::future<void> second = std::async(add);
  add();
  second.get();
}

void AddHostFigures(const SeriesReader& reader, const std::vector<Target>& targets) {
  AddCpuRatio(reader, targets);
  AddUsed(reader, "memory_total_bytes", "memory_available_bytes", "memory_used_bytes", targets);
  AddUsed(reader, "swap_total_bytes", "swap_free_bytes", "swap_used_bytes", targets);
}

void AddProcessFigures(const SeriesReader& reader, const std::vector<Target>& targets) {
  const SeriesDef* cpu = FindInScope(reader.run(), model::Scope::kProcess, "cpu_s");
  if (cpu != nullptr) AddCores(*cpu, reader.Read(cpu->id), targets);
  const std::vector<const EntityDef*> trees = reader.run().EntitiesOf(model::Scope::kProcess);
  if (cpu == nullptr && trees.empty()) return;
  const model::EntityId tree = cpu != nullptr ? cpu->entity : trees.front()->id;
  for (const SeriesDef* series : SeriesOf(reader.run(), tree, kProcessOrder)) {
    if (series == cpu) continue;
    const SeriesColumn column = reader.Read(series->id);
    IntervalStats stats(column, series->period_ns);
    for (const Target& target : targets) {
      const std::optional<Stat> stat = FigureOf(*series, column, target, &stats);
      if (stat) target.process->emplace_back(series->metric.field, *stat);
    }
  }
}

void AddFrameworkFigures(const SeriesReader& reader, const std::vector<Target>& targets) {
  const std::vector<const EntityDef*> entities = reader.run().EntitiesOf(model::Scope::kRank);
  for (const EntityDef* entity : entities) {
    for (const SeriesDef* series : SeriesOf(reader.run(), entity->id, {})) {
      const SeriesColumn column = reader.Read(series->id);
      IntervalStats stats(column, series->period_ns);
      for (const Target& target : targets) {
        if (target.framework == nullptr) continue;
        if (!IsOfTarget(*entity, target, entities.size())) continue;
        const std::optional<Stat> stat = FigureOf(*series, column, target, &stats);
        if (stat) target.framework->emplace_back(series->metric.field, *stat);
      }
    }
  }
}

}  // namespace epochmeter::diagnose
