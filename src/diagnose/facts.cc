// SPDX-License-Identifier: Apache-2.0
#include "diagnose/facts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "diagnose/epochs.h"
#include "diagnose/own_gpus.h"

namespace epochmeter::diagnose {
namespace {

using model::Curve;
using model::Event;
using model::EventKind;
using model::Interval;
using model::Summary;

// Steps that later epochs must have for the first to be warm-up as a whole, and the warm-up of a
// training without such epochs.
constexpr size_t kLaterSteps = 10;
constexpr size_t kWarmUpSteps = 10;

// The numbers of a column; absent ones where no step had it.
class Numbers {
 public:
  Numbers(const model::StepTable& table, std::string_view column) : values_(table.Column(column)) {}
  double operator[](size_t index) const {
    return values_ == nullptr ? model::kAbsentNumber : (*values_)[index];
  }

 private:
  const std::vector<double>* values_;
};

// A duration that can be one: a wild one must not move a begin before the clock.
bool IsDuration(double seconds) { return seconds >= 0 && seconds < 1e8; }

std::vector<TrainStep> StepsOf(const model::StepTable& table) {
  std::vector<TrainStep> steps;
  steps.reserve(table.size());
  const Numbers partial(table, "partial");
  const Numbers duration(table, "duration_s");
  const Numbers wait(table, "data_wait_s");
  const Numbers batch(table, "batch_size");
  const Numbers counts(table, "steps");
  const Numbers epoch(table, "epoch_s");
  for (const size_t index : StepOrder(table)) {
    if (partial[index] > 0) continue;
    TrainStep step{.begin_ns = table.t_ns[index],
                   .end_ns = table.t_ns[index],
                   .duration_s = duration[index],
                   .data_wait_s = wait[index],
                   .batch_size = batch[index],
                   .epoch = table.epoch[index],
                   .step = table.step[index],
                   .index = index};
    const double count = counts[index];
    if (count >= 1 && count < 1e9) step.steps = count;
    if (IsDuration(step.duration_s)) step.begin_ns -= std::llround(step.duration_s * 1e9);
    // It stands for an epoch whose steps nobody told.
    if (IsDuration(epoch[index])) step.begin_ns -= std::llround(epoch[index] * 1e9);
    steps.push_back(step);
  }
  return steps;
}

void SetTraining(const RankEvents& rank, const model::Run& run, RankFacts* facts) {
  std::optional<int64_t> first;
  std::optional<int64_t> begun;
  for (const Event* event : rank.events) {
    if (!first) first = event->t_ns;
    if (event->kind == EventKind::kTrainBegin && !begun) begun = event->t_ns;
    if (event->kind == EventKind::kTrainEnd) facts->training.end_ns = event->t_ns;
    if (event->kind == EventKind::kTrainBegin || event->kind == EventKind::kTrainEnd) {
      facts->ended = event->kind == EventKind::kTrainEnd;
    }
  }
  if (!facts->ended) facts->training.end_ns = run.Recorded().end_ns;
  if (!begun && !facts->steps.empty()) {
    first = std::min(first.value_or(facts->steps.front().begin_ns), facts->steps.front().begin_ns);
  }
  facts->training.begin_ns = begun.value_or(first.value_or(run.Recorded().begin_ns));
  facts->training.end_ns = std::max(facts->training.end_ns, facts->training.begin_ns);
}

// Which of the rows, in the order of their begin, a step is among.
class RowFinder {
 public:
  explicit RowFinder(const std::vector<const model::EpochRow*>& rows) : rows_(rows) {
    int64_t latest = std::numeric_limits<int64_t>::min();
    for (const model::EpochRow* row : rows) {
      latest = std::max(latest, row->end_ns);
      latest_end_ns_.push_back(latest);
    }
  }

  // The last of them; -1 when it is in none.
  int64_t Find(const TrainStep& step) const {
    const auto behind =
        std::upper_bound(rows_.begin(), rows_.end(), step.end_ns,
                         [](int64_t t_ns, const auto* row) { return t_ns < row->begin_ns; });
    for (auto i = behind - rows_.begin(); i-- > 0;) {
      if (latest_end_ns_[static_cast<size_t>(i)] < step.end_ns) break;
      if (step.end_ns <= rows_[static_cast<size_t>(i)]->end_ns) return i;
    }
    return -1;
  }

 private:
  const std::vector<const model::EpochRow*>& rows_;
  std::vector<int64_t> latest_end_ns_;  // of a row and all before it
};

void MarkWarmUp(RankFacts* facts) {
  const RowFinder rows_of(facts->rows);
  std::vector<int64_t> row_of;
  row_of.reserve(facts->steps.size());
  size_t later = 0;
  for (const TrainStep& step : facts->steps) {
    // Steps come in the order of time, and so do rows: most are in the row of the one before.
    const auto& rows = facts->rows;
    const int64_t last = row_of.empty() ? -1 : row_of.back();
    const bool same = last >= 0 && step.end_ns <= rows[static_cast<size_t>(last)]->end_ns;
    row_of.push_back(same ? last : rows_of.Find(step));
    later += row_of.back() > 0 ? 1 : 0;
  }
  const size_t count = facts->steps.size();
  const size_t head = std::min(std::max(kWarmUpSteps, count / 20), kWarmUpSteps * 10);
  size_t compile = 0;
  for (size_t i = 0; i < count; ++i) {
    TrainStep& step = facts->steps[i];
    const bool first_epoch = later >= kLaterSteps ? row_of[i] <= 0 : i < head;
    const bool first_of_epoch = i == 0 || row_of[i] != row_of[i - 1];
    const auto& phases = facts->phases;
    while (compile < phases.size() &&
           (phases[compile].name != "compile" || phases[compile].interval.end_ns < step.begin_ns)) {
      ++compile;
    }
    const bool compiles =
        compile < phases.size() && phases[compile].interval.begin_ns <= step.end_ns;
    step.warm_up = first_epoch || first_of_epoch || compiles;
  }
}

std::vector<Interval> SteadyOf(const RankFacts& facts) {
  std::vector<Interval> steady;
  bool open = false;
  for (const TrainStep& step : facts.steps) {
    const bool good = !step.warm_up && IsDuration(step.duration_s);
    if (good && open && step.begin_ns - steady.back().end_ns < 1'000'000) {
      steady.back().end_ns = std::max(steady.back().end_ns, step.end_ns);
    } else if (good) {
      steady.push_back({.begin_ns = step.begin_ns, .end_ns = step.end_ns});
    }
    open = good;
  }
  std::vector<Interval> phases;
  for (const PhaseSpan& phase : facts.phases) {
    if (phase.name == "eval" || phase.name == "checkpoint" || phase.name == "compile") {
      phases.push_back(phase.interval);
    }
  }
  std::vector<Interval> clean;
  size_t from = 0;
  for (const Interval& stretch : steady) {
    while (from < phases.size() && phases[from].end_ns < stretch.begin_ns) ++from;
    std::vector<Interval> inside;
    for (size_t i = from; i < phases.size() && phases[i].begin_ns <= stretch.end_ns; ++i) {
      inside.push_back(phases[i]);
    }
    for (const Interval& part : Subtract(stretch, std::move(inside))) clean.push_back(part);
  }
  return clean;
}

}  // namespace

std::string FrameworkName(std::string_view told) {
  if (told.find("paddle") != std::string_view::npos) return "paddle";
  if (told.find("torch") != std::string_view::npos) return "pytorch";
  if (told.find("lightning") != std::string_view::npos) return "pytorch";
  if (told.find("transformers") != std::string_view::npos) return "pytorch";
  if (told.find("tensorflow") != std::string_view::npos) return "tensorflow";
  if (told.find("keras") != std::string_view::npos) return "tensorflow";
  return {};
}

std::string FrameworkOf(const model::Run& run) {
  std::string found;
  for (const Event& event : run.events) {
    if (event.kind != EventKind::kHello && event.kind != EventKind::kTrainBegin) continue;
    const std::string name = FrameworkName(event.Text("framework").value_or(""));
    if (!name.empty()) found = name;
  }
  for (const model::EntityDef* entity : run.EntitiesOf(model::Scope::kRank)) {
    if (found.empty()) found = FrameworkName(Find(entity->attributes, "framework"));
  }
  return found;
}

double RankFacts::SteadySeconds() const { return TotalSeconds(steady); }

Facts::Facts(const model::Run& run, const model::Report& report, const Limits& limits)
    : run_(run), report_(report), limits_(limits) {
  const std::vector<RankEvents> ranks = SplitByRank(run);
  const JobGpus job = FindJobGpus(run, ranks);
  std::map<std::pair<std::optional<int32_t>, std::optional<int64_t>>,
           std::vector<const model::EpochRow*>>
      rows;
  for (const model::EpochRow& row : report.epochs) rows[{row.rank, row.pid}].push_back(&row);
  for (const RankEvents& rank : ranks) {
    RankFacts facts{.rank = rank.rank, .pid = rank.pid, .events = rank.events};
    facts.name = model::ProcessName(rank.rank, rank.pid);
    facts.framework = report.framework;
    for (const Event* event : rank.events) {
      const std::string name = FrameworkName(event->Text("framework").value_or(""));
      if (!name.empty()) facts.framework = name;
    }
    facts.table = rank.steps;
    if (rank.steps != nullptr) facts.steps = StepsOf(*rank.steps);
    SetTraining(rank, run, &facts);
    facts.phases = model::PhasesOf(rank, facts.training.end_ns);
    facts.rows = rows[{rank.rank, rank.pid}];
    facts.gpus =
        OwnGpus(run, rank, ranks.size() == 1 ? &job : nullptr).value_or(std::vector<int32_t>());
    MarkWarmUp(&facts);
    facts.steady = SteadyOf(facts);
    ranks_.push_back(std::move(facts));
  }
  for (const Curve& curve : report.curves) curves_[curve.entity].emplace(curve.field, &curve);
  for (const model::SeriesDef& series : run.series) {
    series_[series.entity].emplace(series.metric.field, series.id);
  }
}

size_t Facts::job_gpus() const {
  return static_cast<size_t>(
      std::count_if(report_.gpus.begin(), report_.gpus.end(),
                    [](const model::GpuStats& gpu) { return gpu.of_job.value_or(true); }));
}

const Curve* Facts::FindCurve(model::EntityId entity, std::string_view field) const {
  const auto fields = curves_.find(entity);
  if (fields == curves_.end()) return nullptr;
  const auto found = fields->second.find(field);
  return found == fields->second.end() ? nullptr : found->second;
}

const model::EntityDef* Facts::Gpu(int32_t index) const {
  for (const model::EntityDef& entity : run_.entities) {
    if (entity.scope == model::Scope::kGpu && GpuIndex(entity) == index) return &entity;
  }
  return nullptr;
}

const Curve* Facts::GpuCurve(int32_t index, std::string_view field) const {
  const model::EntityDef* gpu = Gpu(index);
  return gpu == nullptr ? nullptr : FindCurve(gpu->id, field);
}

const Curve* Facts::FirstCurve(model::Scope scope, std::string_view field) const {
  for (const model::EntityDef& entity : run_.entities) {
    if (entity.scope != scope) continue;
    if (const Curve* curve = FindCurve(entity.id, field)) return curve;
  }
  return nullptr;
}

const Curve* Facts::HostCurve(std::string_view field) const {
  return FirstCurve(model::Scope::kHost, field);
}

const Curve* Facts::TreeCurve(std::string_view field) const {
  for (const model::EntityDef& entity : run_.entities) {
    if (entity.scope != model::Scope::kProcess || entity.name != "tree") continue;
    if (const Curve* curve = FindCurve(entity.id, field)) return curve;
  }
  return nullptr;
}

const Curve* Facts::FrameworkCurve(const RankFacts& rank, std::string_view field) const {
  const Curve* only = nullptr;
  size_t count = 0;
  for (const model::EntityDef& entity : run_.entities) {
    if (entity.scope != model::Scope::kRank || !Find(entity.labels, "device").empty()) continue;
    const Curve* curve = FindCurve(entity.id, field);
    if (curve == nullptr) continue;
    const std::string_view label = Find(entity.labels, "rank");
    if (rank.rank && label == std::to_string(*rank.rank)) return curve;
    const std::string_view pid = Find(entity.labels, "pid");
    if (rank.pid && pid == std::to_string(*rank.pid)) return curve;
    only = curve;
    ++count;
  }
  return count == 1 && ranks_.size() <= 1 ? only : nullptr;
}

model::SeriesColumn Facts::Read(model::EntityId entity, std::string_view field,
                                Interval interval) const {
  const auto fields = series_.find(entity);
  if (fields == series_.end() || run_.store == nullptr) return {};
  const auto found = fields->second.find(field);
  if (found == fields->second.end()) return {};
  base::Result<model::SeriesColumn> column = run_.store->Read(found->second, interval);
  return column.ok() ? std::move(column).value() : model::SeriesColumn{};
}

Summary Facts::Over(model::EntityId entity, std::string_view field,
                    std::span<const Interval> intervals) const {
  Summary sum;
  const auto fields = series_.find(entity);
  if (fields == series_.end() || run_.store == nullptr || intervals.empty()) return sum;
  const auto found = fields->second.find(field);
  if (found == fields->second.end()) return sum;
  const auto table =
      run_.store->SummarizeAll({found->second}, {intervals.begin(), intervals.end()});
  if (!table.ok()) return sum;
  for (const Summary& part : table.value().front()) sum.Append(part);
  return sum;
}

std::string Facts::SeriesName(const Curve& curve) const {
  if (curve.entity >= run_.entities.size()) return curve.field;
  return model::EntityName(run_.entities[curve.entity]) + " " + curve.field;
}

Summary Sum(const Curve& curve, std::span<const Interval> intervals) {
  Summary sum;
  for (const Interval& interval : intervals) {
    if (curve.exact) {
      const auto& t_ns = curve.points.t_ns;
      auto at = std::lower_bound(t_ns.begin(), t_ns.end(), interval.begin_ns);
      for (; at != t_ns.end() && *at <= interval.end_ns; ++at) {
        const auto i = static_cast<size_t>(at - t_ns.begin());
        if (std::isnan(curve.points.value[i])) continue;
        const bool follows = i > 0 && !model::IsAbsent(curve.points.value[i - 1]);
        const double weight = follows
                                  ? model::SampleWeightSeconds(t_ns[i - 1], *at, curve.period_ns)
                              : i > 0 ? base::SecondsFromNs(curve.period_ns)
                                      : 0;
        sum.Add(*at, curve.points.value[i], weight);
      }
      continue;
    }
    if (curve.bucket_ns <= 0 || interval.end_ns <= curve.begin_ns) continue;
    // The first bucket that begins at or after the interval's begin.
    const int64_t offset = std::max<int64_t>(interval.begin_ns, curve.begin_ns) - curve.begin_ns;
    auto i = static_cast<size_t>((offset + curve.bucket_ns - 1) / curve.bucket_ns);
    for (; i < curve.buckets.size() && curve.BucketBegin(i + 1) - 1 <= interval.end_ns; ++i) {
      sum.Append(curve.buckets[i]);
    }
  }
  return sum;
}

std::vector<Interval> Subtract(Interval interval, std::vector<Interval> holes) {
  std::sort(holes.begin(), holes.end(),
            [](const Interval& a, const Interval& b) { return a.begin_ns < b.begin_ns; });
  std::vector<Interval> left;
  int64_t from = interval.begin_ns;
  for (const Interval& hole : holes) {
    if (hole.end_ns <= from) continue;
    if (hole.begin_ns >= interval.end_ns) break;
    if (hole.begin_ns > from) left.push_back({.begin_ns = from, .end_ns = hole.begin_ns});
    from = hole.end_ns;
  }
  if (from < interval.end_ns) left.push_back({.begin_ns = from, .end_ns = interval.end_ns});
  return left;
}

double TotalSeconds(std::span<const Interval> intervals) {
  double seconds = 0;
  for (const Interval& interval : intervals) {
    seconds += base::SecondsFromNs(interval.end_ns - interval.begin_ns);
  }
  return seconds;
}

}  // namespace epochmeter::diagnose
