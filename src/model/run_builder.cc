// SPDX-License-Identifier: Apache-2.0
#include "model/run_builder.h"

#include <algorithm>
#include <utility>

#include "model/limits.h"
#include "model/output_events.h"

namespace epochmeter::model {

class RunBuilder::MemoryStore : public SeriesStore {
 public:
  void Define(SeriesId id, int64_t period_ns) {
    if (columns_.size() <= id) columns_.resize(id + 1);
    columns_[id].period_ns = period_ns;
    columns_[id].defined = true;
  }

  bool Add(SeriesId id, int64_t t_ns, double value) {
    if (id >= columns_.size() || !columns_[id].defined) return false;
    SeriesColumn& data = columns_[id].data;
    // Almost always at the end; a late value goes to its place.
    const auto at = std::upper_bound(data.t_ns.begin(), data.t_ns.end(), t_ns);
    const auto offset = at - data.t_ns.begin();
    data.t_ns.insert(at, t_ns);
    data.value.insert(data.value.begin() + offset, value);
    return true;
  }

  base::Result<Summary> Summarize(SeriesId id, Interval interval) const override {
    Summary summary;
    if (id >= columns_.size()) return summary;
    const Column& column = columns_[id];
    const auto [from, to] = Range(column.data, interval);
    for (size_t i = from; i < to; ++i) {
      const double weight = i == 0 ? 0
                                   : SampleWeightSeconds(column.data.t_ns[i - 1],
                                                         column.data.t_ns[i], column.period_ns);
      summary.Add(column.data.t_ns[i], column.data.value[i], weight);
    }
    return summary;
  }

  base::Result<SeriesColumn> Read(SeriesId id, Interval interval) const override {
    SeriesColumn part;
    if (id >= columns_.size()) return part;
    const SeriesColumn& data = columns_[id].data;
    const auto [from, to] = Range(data, interval);
    const auto first = static_cast<std::ptrdiff_t>(from);
    const auto last = static_cast<std::ptrdiff_t>(to);
    part.t_ns.assign(data.t_ns.begin() + first, data.t_ns.begin() + last);
    part.value.assign(data.value.begin() + first, data.value.begin() + last);
    return part;
  }

 private:
  struct Column {
    bool defined = false;
    int64_t period_ns = 0;
    SeriesColumn data;
  };

  static std::pair<size_t, size_t> Range(const SeriesColumn& data, Interval interval) {
    const auto from = std::lower_bound(data.t_ns.begin(), data.t_ns.end(), interval.begin_ns);
    const auto to = std::upper_bound(from, data.t_ns.end(), interval.end_ns);
    return {static_cast<size_t>(from - data.t_ns.begin()),
            static_cast<size_t>(to - data.t_ns.begin())};
  }

  std::vector<Column> columns_;
};

RunBuilder::RunBuilder() : memory_(std::make_unique<MemoryStore>()) {}
RunBuilder::~RunBuilder() = default;

void RunBuilder::Write(const Record& record) {
  if (!std::holds_alternative<Loss>(record) && !HasPossibleTimes(record)) {
    ++impossible_times_;
    return;
  }
  std::visit([this](const auto& typed) { Add(typed); }, record);
}

Run RunBuilder::Finish(std::unique_ptr<SeriesStore> store) {
  if (unknown_ids_ > 0) {
    run_.losses.push_back(
        {.t_ns = run_.span.end_ns,
         .severity = LossSeverity::kDataLoss,
         .kind = "run.undefined_ids",
         .count = unknown_ids_,
         .detail = "values of series whose definition is missing",
         .help = "The part of the file that defined them is damaged; see the losses beside it."});
  }
  if (impossible_times_ > 0) {
    run_.losses.push_back({.t_ns = run_.span.end_ns,
                           .severity = LossSeverity::kDataLoss,
                           .kind = "run.impossible_times",
                           .count = impossible_times_,
                           .detail = "records whose time no clock can show",
                           .help = "The file is damaged or was not made by a recorder."});
  }
  PreferClientEvents(&run_);
  run_.store = store ? std::move(store) : std::move(memory_);
  return std::move(run_);
}

void RunBuilder::Widen(int64_t t_ns) {
  if (!span_known_) run_.span = {.begin_ns = t_ns, .end_ns = t_ns};
  span_known_ = true;
  run_.span.begin_ns = std::min(run_.span.begin_ns, t_ns);
  run_.span.end_ns = std::max(run_.span.end_ns, t_ns);
}

void RunBuilder::Add(const RunInfo& info) {
  if (!run_.info) run_.info = info;
  Widen(info.anchor.mono_ns);
}

// In the order of time, as Run::WallNs searches them; they nearly always come so.
void RunBuilder::Add(const Anchor& anchor) {
  const auto after = std::upper_bound(
      run_.anchors.begin(), run_.anchors.end(), anchor,
      [](const Anchor& a, const Anchor& b) { return a.clocks.mono_ns < b.clocks.mono_ns; });
  run_.anchors.insert(after, anchor);
}

void RunBuilder::Add(const EntityDef& entity) {
  if (run_.entities.size() <= entity.id) run_.entities.resize(entity.id + 1);
  run_.entities[entity.id] = entity;
}

void RunBuilder::Add(const SeriesDef& series) {
  if (run_.series.size() <= series.id) run_.series.resize(series.id + 1);
  run_.series[series.id] = series;
  memory_->Define(series.id, series.period_ns);
}

void RunBuilder::Add(const Samples& samples) {
  Widen(samples.t_ns);
  for (const SampleValue& sample : samples.values) {
    if (!memory_->Add(sample.series, samples.t_ns, sample.value)) ++unknown_ids_;
  }
}

void RunBuilder::Add(const SeriesState& state) {
  Widen(state.t_ns);
  run_.states.push_back(state);
}

void RunBuilder::Add(const Event& event) {
  Widen(event.t_ns);
  if (event.kind == EventKind::kStep) {
    run_.steps[ProcessOf(event)].Add(event);
  } else {
    run_.events.push_back(event);
  }
}

void RunBuilder::Add(const LogText& text) {
  Widen(text.t_ns);
  run_.log.push_back(text);
}

// Never left out, whatever its time.
void RunBuilder::Add(const Loss& loss) {
  run_.losses.push_back(loss);
  int64_t& t_ns = run_.losses.back().t_ns;
  t_ns = std::clamp(t_ns, -kMostNs, kMostNs);
}

void RunBuilder::Add(const RunEnd& end) {
  Widen(end.t_ns);
  run_.end = end;
}

}  // namespace epochmeter::model
