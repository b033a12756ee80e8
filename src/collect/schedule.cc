// SPDX-License-Identifier: Apache-2.0
#include "collect/schedule.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "collect/period_plan.h"
#include "model/source_event.h"

namespace epochmeter::collect {

namespace {

constexpr int64_t kLongestNs = 60 * base::kNsPerSecond;  // of waiting for a retry
// Readings of everything are at least so far apart: a host reading costs about 1 ms, one of NVML
// some ms per GPU.
constexpr int64_t kHostJoinNs = 20 * base::kNsPerMs;
constexpr int64_t kGpuJoinNs = 100 * base::kNsPerMs;
constexpr int kFailuresUntilRemake = 3;

constexpr std::array<model::MetricDef, 3> kMetrics = {
    model::Metric({"recorder.source.duration", "", "source_duration_s", "sample_duration_seconds",
                   "s", model::MetricKind::kGauge, model::Scope::kRun, 1e-6,
                   "Wall time that one reading of the source took.", "schedule"}),
    model::Metric({"recorder.source.success", "", "source_success", "sample_success", "1",
                   model::MetricKind::kState, model::Scope::kRun, 1,
                   "1 when the reading of the source succeeded, 0 when it failed.", "schedule"}),
    model::Metric({"recorder.lag", "", "lag_s", "sample_lag_seconds", "s",
                   model::MetricKind::kGauge, model::Scope::kRun, 1e-6,
                   "How much later than its instant a tick was read.", "schedule"}),
};
enum Self : size_t { kDuration, kSuccess, kLag };

// The last multiple of `period_ns` that is not after `t_ns`.
int64_t InstantBefore(int64_t t_ns, int64_t period_ns) { return t_ns - t_ns % period_ns; }

// How often the kernel took the CPU from this thread.
int64_t Preemptions() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

struct Entry {
  const SourceDef* def = nullptr;
  std::unique_ptr<Source> source;
  int64_t base_period_ns = 0;
  int64_t period_ns = 0;
  int64_t due_ns = 0;
  Turn turn;           // at due_ns
  size_t phase = 0;    // of its turns, so that sources don't all come at the same ticks
  int failures = 0;    // in a row
  std::string reason;  // of the failure that was last told; empty while all is well
  CostMeter costs;
  model::SeriesId duration = 0, success = 0;
  std::set<model::SeriesId> series;      // that the source has defined
  std::set<model::SeriesId> told_error;  // of these, those that were told to be in error
};

class RealSchedule : public Schedule {
 public:
  RealSchedule(const SourceContext& context, std::span<const SourceDef> defs, std::string label)
      : context_(WithLabel(context, std::move(label))),
        plan_(context_.env, context_.cpu_ratio, context_.nvml != nullptr, context_.tick_ns) {
    self_ = context_.registry.AddEntity({.id = 0,
                                         .scope = model::Scope::kRun,
                                         .name = context_.process_label,
                                         .labels = {{"process", context_.process_label}},
                                         .attributes = {}});
    lag_ = context_.registry.AddSeries(self_, kMetrics[kLag], context_.tick_ns);
    const int64_t now_ns = context_.env.monotonic_ns();
    entries_.resize(defs.size());
    for (size_t i = 0; i < defs.size(); ++i) {
      Entry& entry = entries_[i];
      entry.def = &defs[i];
      entry.phase = i;
      entry.base_period_ns = entry.period_ns = TierPeriodNs(defs[i].tier, context_.tick_ns);
      entry.duration = AddSelfSeries(entry, kMetrics[kDuration]);
      entry.success = AddSelfSeries(entry, kMetrics[kSuccess]);
      // The first reading is at the next instant of the run's interval for every tier.
      entry.due_ns = InstantBefore(now_ns, context_.tick_ns) + context_.tick_ns;
      if (const auto made = MakeSource(entry); !made.ok()) Fail(entry, made.error(), now_ns);
    }
  }

  int64_t NextDueNs() const override {
    int64_t next_ns = pending_epoch_ns_.value_or(std::numeric_limits<int64_t>::max());
    for (const Entry& entry : entries_) next_ns = std::min(next_ns, entry.due_ns);
    return next_ns;
  }

  void RunDue(int64_t now_ns) override {
    if (pending_epoch_ns_ && *pending_epoch_ns_ <= now_ns) RunAtEpoch(now_ns);
    const int64_t due_ns = NextDueNs();
    if (due_ns > now_ns) return;
    const int64_t instant_ns = InstantBefore(now_ns, context_.tick_ns);
    const int64_t late_ns = now_ns - due_ns;
    // A retry may fall between two instants; then the time of reading is the only true one.
    const bool on_time = due_ns <= instant_ns && now_ns - instant_ns <= context_.tick_ns / 100;
    model::Samples out{.t_ns = on_time ? instant_ns : now_ns, .values = {}};
    for (Entry& entry : entries_) {
      if (entry.due_ns > now_ns) continue;
      const Turn turn = entry.turn;
      SetNext(entry, now_ns);  // first: reading may plan otherwise
      Read(entry, now_ns, turn, out);
    }
    out.values.push_back({.series = lag_, .value = base::SecondsFromNs(late_ns)});
    Write(out);
    if (plan_.Due(now_ns)) Plan(now_ns);
  }

  void RunAtEpoch(int64_t now_ns) override {
    const int64_t join_ns = context_.nvml != nullptr ? kGpuJoinNs : kHostJoinNs;
    if (last_epoch_ns_ && now_ns - *last_epoch_ns_ < join_ns) {
      pending_epoch_ns_ = *last_epoch_ns_ + join_ns;
      return;
    }
    pending_epoch_ns_.reset();
    last_epoch_ns_ = now_ns;
    ReadNow(now_ns, Reading::kEpoch);
  }

  void RunAtEnd(int64_t now_ns) override { ReadNow(now_ns, Reading::kEnd); }
  void RunAllNow(int64_t now_ns) override { ReadNow(now_ns, Reading::kAll); }

 private:
  enum class Reading : uint8_t { kEpoch, kEnd, kAll };

  void ReadNow(int64_t now_ns, Reading what) {
    model::Samples out{.t_ns = now_ns, .values = {}};
    for (Entry& entry : entries_) {
      const bool of_epochs = entry.def->at_epochs && entry.due_ns != kOff;
      if (what != Reading::kAll && !of_epochs) continue;
      if (entry.failures > 0 && entry.due_ns > now_ns) continue;  // waits for its retry
      if (what == Reading::kEpoch && !plan_.AllowsAtEpoch(entry.def->vital, now_ns)) continue;
      if (entry.due_ns <= now_ns) SetNext(entry, now_ns);
      const std::optional<ReadingCost> cost = Read(entry, now_ns, {}, out);
      if (what == Reading::kEpoch && cost) plan_.NoteReadAtEpoch(*cost);
    }
    Write(out);
  }

  static SourceContext WithLabel(SourceContext context, std::string label) {
    context.process_label = std::move(label);
    return context;
  }

  model::SeriesId AddSelfSeries(const Entry& entry, const model::MetricDef& def) {
    model::MetricInfo info = model::InfoOf(def);
    info.label = "source=" + std::string(entry.def->name);
    return context_.registry.AddSeries(self_, info, entry.period_ns);
  }

  // Runs `call` and notes the series that it defines as the entry's.
  template <typename Call>
  auto NotingSeries(Entry& entry, Call call) {
    const size_t before = context_.registry.all_series().size();
    auto result = call();
    const size_t after = context_.registry.all_series().size();
    for (size_t id = before; id < after; ++id) {
      entry.series.insert(static_cast<model::SeriesId>(id));
    }
    if (after > before) RaisePeriods(entry);
    return result;
  }

  base::Result<> MakeSource(Entry& entry) {
    auto made = NotingSeries(entry, [&] { return entry.def->Make(context_); });
    if (!made.ok()) return std::move(made).error();
    entry.source = std::move(made).value();
    return {};
  }

  // What it took; nothing when it failed.
  std::optional<ReadingCost> Read(Entry& entry, int64_t now_ns, const Turn& turn,
                                  model::Samples& out) {
    const int64_t wall_ns = context_.env.monotonic_ns();
    const int64_t cpu_ns = context_.env.thread_cpu_ns();
    const int64_t preemptions = context_.nvml != nullptr ? Preemptions() : 0;
    const size_t first = out.values.size();
    const base::Result<> result = SampleOnce(entry, turn, out);
    const int64_t wall_cost_ns = context_.env.monotonic_ns() - wall_ns;
    ReadingCost cost{.cpu_ns = context_.env.thread_cpu_ns() - cpu_ns, .driver_ns = 0};
    // Of a reading that others interrupted, the wall time says how busy the machine is.
    if (context_.nvml != nullptr) {
      cost.driver_ns = Preemptions() == preemptions ? wall_cost_ns : cost.cpu_ns;
    }
    plan_.NoteRead(cost);
    if (result.ok()) {
      Recover(entry, now_ns, out, first);
      entry.costs.Add(cost, turn.slots <= 1 ? 1 : turn.Count(), turn.slots <= 1 ? 1 : turn.parts);
    } else {
      out.values.resize(first);
      Fail(entry, result.error(), now_ns);
    }
    out.values.push_back({.series = entry.duration, .value = base::SecondsFromNs(wall_cost_ns)});
    out.values.push_back({.series = entry.success, .value = result.ok() ? 1.0 : 0.0});
    return result.ok() ? std::optional(cost) : std::nullopt;
  }

  base::Result<> SampleOnce(Entry& entry, const Turn& turn, model::Samples& out) {
    if (!entry.source) EPM_TRY(MakeSource(entry));
    return NotingSeries(entry, [&] { return entry.source->SampleTurn(out, turn); });
  }

  // The next instant of its period; the next tick at which parts of it have their turn.
  void SetNext(Entry& entry, int64_t now_ns) const {
    const int64_t tick_ns = context_.tick_ns;
    const size_t parts = entry.source != nullptr ? entry.source->parts() : 0;
    entry.turn = {};
    if (entry.period_ns == kOff) {
      entry.due_ns = kOff;
      return;
    }
    entry.due_ns = InstantBefore(now_ns, entry.period_ns) + entry.period_ns;
    const auto slots = static_cast<size_t>((entry.period_ns + tick_ns - 1) / tick_ns);
    if (parts == 0 || slots <= 1) return;
    const auto tick = static_cast<size_t>(now_ns / tick_ns);
    for (size_t i = 1; i <= slots; ++i) {
      entry.turn = {.slot = (tick + i + entry.phase) % slots, .slots = slots, .parts = parts};
      entry.due_ns = static_cast<int64_t>(tick + i) * tick_ns;
      if (entry.turn.Count() > 0) return;
    }
  }

  void Fail(Entry& entry, const base::Error& error, int64_t now_ns) {
    const int64_t wait_ns = base::kNsPerSecond << std::min(entry.failures, 6);
    ++entry.failures;
    entry.due_ns = now_ns + std::min(wait_ns, kLongestNs);
    entry.turn = {};
    const bool existed = entry.source != nullptr;
    if (entry.failures >= kFailuresUntilRemake) entry.source.reset();
    const std::string reason = error.Message();
    if (reason == entry.reason) return;
    entry.reason = reason;
    Tell(entry, now_ns, existed ? "failing" : "unavailable", {{"reason", reason}});
    TellNoValues(entry, reason, now_ns);
  }

  void TellNoValues(Entry& entry, const std::string& reason, int64_t now_ns) {
    for (const model::SeriesId series : entry.series) {
      entry.told_error.insert(series);
      context_.sink.Write(model::SeriesState{.t_ns = now_ns,
                                             .series = series,
                                             .condition = model::SeriesCondition::kError,
                                             .detail = reason});
    }
  }

  // A series is well again only when it has a value: the source may have its own reason why one
  // has none.
  void Recover(Entry& entry, int64_t now_ns, const model::Samples& out, size_t first) {
    if (entry.failures > 0) {
      entry.failures = 0;
      entry.reason.clear();
      SetNext(entry, now_ns);
      Tell(entry, now_ns, "ok", {});
    }
    for (size_t i = first; i < out.values.size() && !entry.told_error.empty(); ++i) {
      if (entry.told_error.erase(out.values[i].series) == 0) continue;
      context_.sink.Write(model::SeriesState{.t_ns = now_ns,
                                             .series = out.values[i].series,
                                             .condition = model::SeriesCondition::kOk,
                                             .detail = ""});
    }
  }

  // A vital source is cheap, but for its first readings, which find everything out: they don't
  // count.
  Demand DemandOf(const Entry& entry) const {
    const bool young = entry.def->vital && !planned_;
    return {.base_ns = entry.base_period_ns,
            .longest_ns = entry.def->longest_ns,
            .vital = entry.def->vital,
            .worth = entry.def->worth,
            .cost = young ? ReadingCost{} : entry.costs.Usual().value_or(ReadingCost{})};
  }

  void Plan(int64_t now_ns) {
    std::vector<Demand> demands;
    std::vector<int64_t> periods_ns;
    for (const Entry& entry : entries_) {
      demands.push_back(DemandOf(entry));
      periods_ns.push_back(entry.period_ns);
    }
    periods_ns = plan_.Make(now_ns, demands, periods_ns);
    planned_ = true;
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (periods_ns[i] != entries_[i].period_ns) SetPeriod(entries_[i], periods_ns[i], now_ns);
    }
    const bool exceeded = plan_.cpu_ratio() > plan_.limit_ratio();
    if (exceeded == std::exchange(exceeded_, exceeded)) return;
    TellEvent("budget", now_ns, exceeded ? "exceeded" : "kept",
              {{"reason", fmt::format("what is read takes {:.2f} % of a core, of {:.2f} % that are "
                                      "left in the budget of the {}",
                                      100 * plan_.cpu_ratio(), 100 * plan_.limit_ratio(),
                                      context_.process_label)}});
  }

  void SetPeriod(Entry& entry, int64_t period_ns, int64_t now_ns) {
    const bool slower = period_ns > entry.period_ns;
    const ReadingCost cost = entry.costs.Usual().value_or(ReadingCost{});
    entry.period_ns = period_ns;
    if (entry.failures == 0) SetNext(entry, now_ns);
    const std::string reason =
        fmt::format("one reading takes {:.1f} ms of CPU time, and the {} has {:.2f} % of a core",
                    static_cast<double>(cost.cpu_ns) / base::kNsPerMs, context_.process_label,
                    100 * context_.cpu_ratio);
    if (period_ns == kOff) {
      Tell(entry, now_ns, "off", {{"reason", reason}});
      return TellNoValues(entry, "not read: " + reason, now_ns);
    }
    RaisePeriods(entry);
    Tell(entry, now_ns, slower ? "slowed" : "restored",
         {{"period_s", base::SecondsFromNs(period_ns)},
          {"usual_period_s", base::SecondsFromNs(entry.base_period_ns)},
          {"cost_s", base::SecondsFromNs(cost.cpu_ns)},
          {"reason", reason}});
  }

  void RaisePeriods(const Entry& entry) const {
    if (entry.period_ns == entry.base_period_ns || entry.period_ns == kOff) return;
    std::set<model::SeriesId> all = entry.series;
    all.insert({entry.duration, entry.success});
    for (const model::SeriesId series : all) {
      const model::SeriesDef def = context_.registry.series(series);
      context_.registry.AddSeries(def.entity, def.metric, entry.period_ns);
    }
  }

  void Tell(const Entry& entry, int64_t now_ns, std::string state,
            std::vector<model::EventField> fields) {
    TellEvent(std::string(entry.def->name), now_ns, std::move(state), std::move(fields));
  }

  void TellEvent(std::string name, int64_t now_ns, std::string state,
                 std::vector<model::EventField> fields) {
    fields.insert(fields.begin(), {"state", std::move(state)});
    fields.push_back({"process", context_.process_label});
    context_.sink.Write(model::SourceEvent(now_ns, std::move(name), std::move(fields)));
  }

  // A value that is no number would spoil every mean behind it.
  void Write(model::Samples& out) {
    const size_t dropped = std::erase_if(
        out.values, [](const model::SampleValue& v) { return !std::isfinite(v.value); });
    if (dropped > 0) {
      context_.sink.Write(model::Loss{.t_ns = out.t_ns,
                                      .severity = model::LossSeverity::kDataLoss,
                                      .kind = "value.not_finite",
                                      .count = dropped,
                                      .detail = "values of a source that are no numbers",
                                      .help = "report this with the output of `epochmeter dump`"});
    }
    context_.sink.Write(out);
  }

  const SourceContext context_;
  model::EntityId self_ = 0;
  model::SeriesId lag_ = 0;
  std::vector<Entry> entries_;
  PeriodPlan plan_;
  bool planned_ = false;
  bool exceeded_ = false;
  std::optional<int64_t> last_epoch_ns_;
  std::optional<int64_t> pending_epoch_ns_;  // a reading that was asked for too soon
};

}  // namespace

std::unique_ptr<Schedule> Schedule::Make(const SourceContext& context,
                                         std::span<const SourceDef> defs,
                                         std::string process_label) {
  return std::make_unique<RealSchedule>(context, defs, std::move(process_label));
}

std::span<const model::MetricDef> ScheduleMetrics() { return kMetrics; }

}  // namespace epochmeter::collect
