// SPDX-License-Identifier: Apache-2.0
#include "collect/machine_probe.h"

#include <algorithm>
#include <map>
#include <set>

namespace epochmeter::collect {
namespace {

std::string TextOf(const model::Event& event, std::string_view key) {
  return std::string(event.Text(key).value_or(""));
}

std::optional<int64_t> IntOf(const model::Event& event, std::string_view key) {
  const auto number = event.Number(key);
  return number ? std::optional(static_cast<int64_t>(*number)) : std::nullopt;
}

void ReadLibrary(const model::Event& event, NvmlProbe& probe) {
  probe.answered = true;
  probe.open = IntOf(event, "open") == 1;
  probe.path = TextOf(event, "path");
  probe.driver_version = TextOf(event, "driver_version");
  probe.nvml_version = TextOf(event, "nvml_version");
  probe.open_error = {.what = TextOf(event, "what"),
                      .where = TextOf(event, "where"),
                      .why = TextOf(event, "why"),
                      .what_to_do = TextOf(event, "what_to_do"),
                      .code = static_cast<int>(IntOf(event, "code").value_or(0))};
}

ProbedGpu ReadGpu(const model::Event& event) {
  return {.index = IntOf(event, "index").value_or(0),
          .code = IntOf(event, "code").value_or(0),
          .error = TextOf(event, "error"),
          .name = TextOf(event, "name"),
          .uuid = TextOf(event, "uuid"),
          .bus_id = TextOf(event, "bus_id"),
          .mig_mode = IntOf(event, "mig_mode"),
          .mig_pending = IntOf(event, "mig_pending"),
          .mig_instances = IntOf(event, "mig_instances"),
          .persistence = IntOf(event, "persistence"),
          .virtualization = IntOf(event, "virtualization"),
          .memory_code = IntOf(event, "memory_code").value_or(0),
          .memory_total_bytes = IntOf(event, "memory_total_bytes")};
}

// The records of one probing process, by series.
class Heard {
 public:
  explicit Heard(std::span<const model::Record> records) {
    for (const model::Record& record : records)
      std::visit([this](const auto& r) { Take(r); }, record);
  }

  ProbedSource Describe(const SourceDef& def, const std::string& reason) const {
    ProbedSource out{.name = std::string(def.name),
                     .summary = std::string(def.summary),
                     .period_s = base::SecondsFromNs(TierPeriodNs(def.tier, base::kNsPerSecond)),
                     .reads = 0,
                     .median_us = {},
                     .failure = {},
                     .metrics = {}};
    const auto failed = failures_.find(out.name);
    if (failed != failures_.end()) out.failure = failed->second;
    AddCost(out);
    for (const model::MetricDef& metric : def.metrics) {
      out.metrics.push_back(DescribeMetric(metric, out.failure.empty() ? reason : out.failure));
    }
    return out;
  }

 private:
  template <typename T>
  void Take(const T&) {}
  void Take(const model::SeriesDef& series) { series_[series.id] = series; }
  void Take(const model::Samples& samples) {
    for (const model::SampleValue& value : samples.values)
      values_[value.series].push_back(value.value);
  }
  void Take(const model::SeriesState& state) {
    const bool ok = state.condition == model::SeriesCondition::kOk;
    reasons_[state.series] = ok ? ""
                                : std::string(model::SeriesConditionName(state.condition)) +
                                      (state.detail.empty() ? "" : ": " + state.detail);
  }
  void Take(const model::Event& event) {
    if (event.kind != model::EventKind::kSource) return;
    const std::string state = TextOf(event, "state");
    if (state == "unavailable" || state == "failing")
      failures_[event.name] = TextOf(event, "reason");
    if (state == "ok") failures_.erase(event.name);
  }

  void AddCost(ProbedSource& out) const {
    for (const auto& [id, series] : series_) {
      const bool own = series.metric.name == "recorder.source.duration" &&
                       series.metric.label == "source=" + out.name;
      const auto found = values_.find(id);
      if (!own || found == values_.end()) continue;
      std::vector<double> costs = found->second;
      // The first reading opens files and fills caches: not the usual cost.
      if (costs.size() > 1) costs.erase(costs.begin());
      std::sort(costs.begin(), costs.end());
      out.reads = static_cast<int>(costs.size());
      if (out.failure.empty()) out.median_us = costs[costs.size() / 2] * 1e6;
    }
  }

  ProbedMetric DescribeMetric(const model::MetricDef& def, const std::string& reason) const {
    ProbedMetric out{
        .info = model::InfoOf(def), .entities = 0, .known_entities = 0, .value = {}, .reason = {}};
    for (const auto& [id, series] : series_) {
      const bool same_label = def.label.empty() || series.metric.label == def.label;
      if (series.metric.name != def.name || series.metric.scope != def.scope || !same_label)
        continue;
      ++out.known_entities;
      const auto values = values_.find(id);
      if (values != values_.end()) {
        ++out.entities;
        if (!out.value) out.value = values->second.back();
        continue;
      }
      const auto told = reasons_.find(id);
      if (told != reasons_.end() && out.reason.empty()) out.reason = told->second;
    }
    if (!out.measured() && out.reason.empty()) out.reason = reason;
    return out;
  }

  std::map<model::SeriesId, model::SeriesDef> series_;
  std::map<model::SeriesId, std::vector<double>> values_;
  std::map<model::SeriesId, std::string> reasons_;
  std::map<std::string, std::string> failures_;
};

}  // namespace

NvmlProbe ReadNvmlProbe(std::span<const model::Record> records) {
  NvmlProbe probe;
  for (const model::Record& record : records) {
    const auto* event = std::get_if<model::Event>(&record);
    if (event == nullptr || event->kind != model::EventKind::kMark) continue;
    if (event->name == kProbeLibrary) ReadLibrary(*event, probe);
    if (event->name == kProbeDevice) probe.gpus.push_back(ReadGpu(*event));
    if (event->name == kProbeCall && event->Number("median_us")) {
      probe.calls.push_back({.name = TextOf(*event, "call"),
                             .code = IntOf(*event, "code").value_or(0),
                             .error = TextOf(*event, "error"),
                             .median_us = *event->Number("median_us"),
                             .reads = IntOf(*event, "reads").value_or(0)});
    }
  }
  return probe;
}

std::vector<ProbedSource> ReadSourceProbe(std::span<const model::Record> records,
                                          std::span<const SourceDef> defs,
                                          const std::string& reason) {
  const Heard heard(records);
  std::vector<ProbedSource> sources;
  sources.reserve(defs.size());
  for (const SourceDef& def : defs) sources.push_back(heard.Describe(def, reason));
  return sources;
}

}  // namespace epochmeter::collect
