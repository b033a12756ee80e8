// SPDX-License-Identifier: Apache-2.0
#include "collect/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

namespace epochmeter::collect {

namespace {

constexpr int64_t kLongestNs = 60 * base::kNsPerSecond;  // of waiting and of slowed periods
// Readings of everything are at least so far apart: a host reading costs about 1 ms, one of NVML
// some ms per GPU.
constexpr int64_t kHostJoinNs = 20 * base::kNsPerMs;
constexpr int64_t kGpuJoinNs = 100 * base::kNsPerMs;
constexpr int kFailuresUntilRemake = 3;
constexpr size_t kCostWindow = 16;

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

// Costs of the last readings, for the usual one.
class CostWindow {
 public:
  void Add(int64_t cost_ns) {
    if (costs_.size() == kCostWindow) costs_.erase(costs_.begin());
    costs_.push_back(cost_ns);
  }
  void Clear() { costs_.clear(); }
  // Nothing until the window is full.
  std::optional<int64_t> Usual() const {
    if (costs_.size() < kCostWindow) return std::nullopt;
    std::vector<int64_t> sorted = costs_;
    std::nth_element(sorted.begin(), sorted.begin() + kCostWindow / 2, sorted.end());
    return sorted[kCostWindow / 2];
  }

 private:
  std::vector<int64_t> costs_;
};

struct Entry {
  const SourceDef* def = nullptr;
  std::unique_ptr<Source> source;
  int64_t base_period_ns = 0;
  int64_t period_ns = 0;
  int64_t due_ns = 0;
  int failures = 0;    // in a row
  std::string reason;  // of the failure that was last told; empty while all is well
  CostWindow costs;
  model::SeriesId duration = 0, success = 0;
  std::set<model::SeriesId> series;      // that the source has defined
  std::set<model::SeriesId> told_error;  // of these, those that were told to be in error
};

class RealSchedule : public Schedule {
 public:
  RealSchedule(const SourceContext& context, std::span<const SourceDef> defs, std::string label)
      : context_(WithLabel(context, std::move(label))) {
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
      // Planned first: reading may plan otherwise.
      entry.due_ns = InstantBefore(now_ns, entry.period_ns) + entry.period_ns;
      Read(entry, now_ns, out);
    }
    out.values.push_back({.series = lag_, .value = base::SecondsFromNs(late_ns)});
    Write(out);
  }

  void RunAtEpoch(int64_t now_ns) override {
    const int64_t join_ns = context_.nvml != nullptr ? kGpuJoinNs : kHostJoinNs;
    if (last_epoch_ns_ && now_ns - *last_epoch_ns_ < join_ns) {
      pending_epoch_ns_ = *last_epoch_ns_ + join_ns;
      return;
    }
    pending_epoch_ns_.reset();
    last_epoch_ns_ = now_ns;
    ReadNow(now_ns, false);
  }

  void RunAllNow(int64_t now_ns) override { ReadNow(now_ns, true); }

 private:
  void ReadNow(int64_t now_ns, bool all) {
    model::Samples out{.t_ns = now_ns, .values = {}};
    for (Entry& entry : entries_) {
      if (!all && !entry.def->at_epochs) continue;
      if (entry.failures > 0 && entry.due_ns > now_ns) continue;  // waits for its retry
      if (entry.due_ns <= now_ns) {
        entry.due_ns = InstantBefore(now_ns, entry.period_ns) + entry.period_ns;
      }
      Read(entry, now_ns, out);
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
    return result;
  }

  base::Result<> MakeSource(Entry& entry) {
    auto made = NotingSeries(entry, [&] { return entry.def->Make(context_); });
    if (!made.ok()) return std::move(made).error();
    entry.source = std::move(made).value();
    return {};
  }

  void Read(Entry& entry, int64_t now_ns, model::Samples& out) {
    const int64_t wall_ns = context_.env.monotonic_ns();
    const int64_t cpu_ns = context_.env.thread_cpu_ns();
    const size_t first = out.values.size();
    const base::Result<> result = SampleOnce(entry, out);
    const int64_t wall_cost_ns = context_.env.monotonic_ns() - wall_ns;
    const int64_t cpu_cost_ns = context_.env.thread_cpu_ns() - cpu_ns;
    if (result.ok()) {
      Recover(entry, now_ns, out, first);
      Adapt(entry, now_ns, context_.nvml != nullptr ? wall_cost_ns : cpu_cost_ns);
    } else {
      out.values.resize(first);
      Fail(entry, result.error(), now_ns);
    }
    out.values.push_back({.series = entry.duration, .value = base::SecondsFromNs(wall_cost_ns)});
    out.values.push_back({.series = entry.success, .value = result.ok() ? 1.0 : 0.0});
  }

  base::Result<> SampleOnce(Entry& entry, model::Samples& out) {
    if (!entry.source) EPM_TRY(MakeSource(entry));
    return NotingSeries(entry, [&] { return entry.source->Sample(out); });
  }

  void Fail(Entry& entry, const base::Error& error, int64_t now_ns) {
    const int64_t wait_ns = base::kNsPerSecond << std::min(entry.failures, 6);
    ++entry.failures;
    entry.due_ns = now_ns + std::min(wait_ns, kLongestNs);
    const bool existed = entry.source != nullptr;
    if (entry.failures >= kFailuresUntilRemake) entry.source.reset();
    const std::string reason = error.Message();
    if (reason == entry.reason) return;
    entry.reason = reason;
    Tell(entry, now_ns, existed ? "failing" : "unavailable", {{"reason", reason}});
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
      entry.due_ns = InstantBefore(now_ns, entry.period_ns) + entry.period_ns;
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

  void Adapt(Entry& entry, int64_t now_ns, int64_t cost_ns) {
    entry.costs.Add(cost_ns);
    const auto usual_ns = entry.costs.Usual();
    if (!usual_ns) return;
    const int64_t most_ns = std::max(kLongestNs, entry.base_period_ns);
    int64_t period_ns = entry.period_ns;
    if (*usual_ns > entry.period_ns / 100) {
      period_ns = std::min(2 * entry.period_ns, most_ns);
    } else if (*usual_ns < entry.period_ns / 400) {
      period_ns = std::max(entry.period_ns / 2, entry.base_period_ns);
    }
    if (period_ns == entry.period_ns) return;
    const bool slower = period_ns > entry.period_ns;
    entry.period_ns = period_ns;
    entry.due_ns = InstantBefore(now_ns, period_ns) + period_ns;
    entry.costs.Clear();
    Tell(
        entry, now_ns, slower ? "slowed" : "restored",
        {{"period_s", base::SecondsFromNs(period_ns)}, {"cost_s", base::SecondsFromNs(*usual_ns)}});
  }

  void Tell(const Entry& entry, int64_t now_ns, std::string state,
            std::vector<model::EventField> fields) {
    fields.insert(fields.begin(), {"state", std::move(state)});
    fields.push_back({"process", context_.process_label});
    context_.sink.Write(model::Event{.t_ns = now_ns,
                                     .kind = model::EventKind::kSource,
                                     .rank = {},
                                     .epoch = {},
                                     .step = {},
                                     .name = std::string(entry.def->name),
                                     .fields = std::move(fields)});
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
