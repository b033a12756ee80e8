// SPDX-License-Identifier: Apache-2.0
#include "export/series_list.h"

#include <algorithm>
#include <map>

#include "base/strings.h"

namespace epochmeter::exporting {
namespace {

using model::EntityDef;
using model::Labels;
using model::SeriesDef;

std::string LabelOf(const Labels& labels, std::string_view key) {
  for (const auto& [name, value] : labels) {
    if (name == key) return value;
  }
  return {};
}

// Letters, digits and underscores; anything else becomes an underscore.
std::string Word(std::string_view text) {
  std::string word(text);
  for (char& c : word) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain) c = '_';
  }
  return word;
}

// "sensor=core" -> the pair.
std::pair<std::string, std::string> SplitLabel(const std::string& label) {
  const size_t at = label.find('=');
  return {label.substr(0, at), at == std::string::npos ? "" : label.substr(at + 1)};
}

Labels OtherLabels(const SeriesDef& def, const EntityDef& entity) {
  Labels labels;
  if (!def.metric.label.empty()) labels.push_back(SplitLabel(def.metric.label));
  for (const auto& [key, value] : entity.labels) {
    if (key != "gpu" && key != "uuid" && key != "rank") labels.emplace_back(key, value);
  }
  return labels;
}

std::string WideName(const ExportedSeries& series) {
  std::string name = series.def->metric.prometheus;
  const bool of_gpu = !series.gpu.empty() && base::StartsWith(name, "gpu_");
  if (of_gpu) name.insert(3, Word(series.gpu));
  for (const auto& [key, value] : series.labels) name += "_" + Word(value);
  if (!series.gpu.empty() && !of_gpu) name += "_gpu" + Word(series.gpu);
  if (!series.rank.empty()) name += "_rank" + Word(series.rank);
  return name;
}

std::string MetricName(const ExportedSeries& series) {
  std::string name = series.def->metric.prometheus;
  for (size_t i = 0; i < series.labels.size(); ++i) {
    name += (i == 0 ? "{" : ",") + series.labels[i].first + "=" + series.labels[i].second;
  }
  return series.labels.empty() ? name : name + "}";
}

bool Before(const ExportedSeries& a, const ExportedSeries& b) {
  if (a.def->metric.scope != b.def->metric.scope) return a.def->metric.scope < b.def->metric.scope;
  if (a.entity != b.entity) {
    const auto index_a = base::ParseInt(a.gpu.empty() ? a.rank : a.gpu).value_or(INT32_MAX);
    const auto index_b = base::ParseInt(b.gpu.empty() ? b.rank : b.gpu).value_or(INT32_MAX);
    if (index_a != index_b) return index_a < index_b;
    return a.entity->name < b.entity->name;
  }
  return a.def->id < b.def->id;
}

void MakeUnique(std::vector<ExportedSeries>* list) {
  std::map<std::string, int> seen;
  for (ExportedSeries& series : *list) {
    const int times = ++seen[series.wide_name];
    if (times > 1) series.wide_name += "_" + std::to_string(times);
  }
}

}  // namespace

std::vector<ExportedSeries> ListSeries(const model::Run& run) {
  std::vector<ExportedSeries> list;
  for (const SeriesDef& def : run.series) {
    if (def.metric.prometheus.empty() || def.entity >= run.entities.size()) continue;
    const EntityDef& entity = run.entities[def.entity];
    ExportedSeries series{.def = &def,
                          .entity = &entity,
                          .wide_name = {},
                          .metric = {},
                          .labels = OtherLabels(def, entity),
                          .gpu = LabelOf(entity.labels, "gpu"),
                          .uuid = LabelOf(entity.labels, "uuid"),
                          .rank = LabelOf(entity.labels, "rank")};
    series.wide_name = WideName(series);
    series.metric = MetricName(series);
    list.push_back(std::move(series));
  }
  std::stable_sort(list.begin(), list.end(), Before);
  MakeUnique(&list);
  return list;
}

}  // namespace epochmeter::exporting
