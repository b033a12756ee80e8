// SPDX-License-Identifier: Apache-2.0
#include "runfile/sample_rows.h"

#include <algorithm>
#include <tuple>

namespace epochmeter::runfile {
namespace {

constexpr size_t kColumnsAtOnce = 8;  // int64 of one cache line

// `rows` rows of `width` integers as columns, one behind the other.
std::vector<int64_t> Transposed(const std::vector<int64_t>& raw, size_t rows, size_t width) {
  std::vector<int64_t> columns(raw.size());
  for (size_t begin = 0; begin < width; begin += kColumnsAtOnce) {
    const size_t end = std::min(width, begin + kColumnsAtOnce);
    for (size_t row = 0; row < rows; ++row) {
      for (size_t column = begin; column < end; ++column) {
        columns[column * rows + row] = raw[row * width + column];
      }
    }
  }
  return columns;
}

bool IsOf(const std::vector<model::SeriesId>& ids, const model::Samples& samples) {
  return std::equal(
      ids.begin(), ids.end(), samples.values.begin(), samples.values.end(),
      [](model::SeriesId id, const model::SampleValue& sample) { return id == sample.series; });
}

}  // namespace

size_t SampleRows::GroupOf(const model::Samples& samples) {
  if (last_group_ < groups_.size() && IsOf(groups_[last_group_].ids, samples)) return last_group_;
  std::vector<model::SeriesId> ids;
  ids.reserve(samples.values.size());
  for (const model::SampleValue& sample : samples.values) ids.push_back(sample.series);
  const auto [found, is_new] = group_of_.emplace(std::move(ids), groups_.size());
  if (is_new) groups_.emplace_back().ids = found->first;
  return found->second;
}

void SampleRows::BeginRow(const model::Samples& samples) {
  last_group_ = GroupOf(samples);
  group_ = &groups_[last_group_];
  group_->t_ns.push_back(samples.t_ns);
  group_->order.push_back(rows_++);
}

std::vector<SampleRows::Sources> SampleRows::SourcesOfSeries() const {
  std::vector<Sources> sources;
  for (uint32_t group = 0; group < groups_.size(); ++group) {
    const std::vector<model::SeriesId>& ids = groups_[group].ids;
    if (groups_[group].t_ns.empty()) continue;
    for (uint32_t column = 0; column < ids.size(); ++column) {
      if (sources.size() <= ids[column]) sources.resize(ids[column] + size_t{1});
      sources[ids[column]].push_back({.group = group, .column = column});
    }
  }
  return sources;
}

SampleRows::Times SampleRows::TimesOf(const Sources& sources) const {
  Times times;
  const Group& first = groups_[sources.front().group];
  if (sources.size() == 1 && std::is_sorted(first.t_ns.begin(), first.t_ns.end())) {
    times.t_ns = first.t_ns;
    return times;
  }
  // Time, order of arrival, source, row.
  std::vector<std::tuple<int64_t, uint32_t, uint32_t, uint32_t>> samples;
  for (uint32_t source = 0; source < sources.size(); ++source) {
    const Group& group = groups_[sources[source].group];
    for (uint32_t row = 0; row < group.t_ns.size(); ++row) {
      samples.emplace_back(group.t_ns[row], group.order[row], source, row);
    }
  }
  std::sort(samples.begin(), samples.end());
  for (const auto& [t_ns, order, source, row] : samples) {
    times.t_ns.push_back(t_ns);
    times.places.emplace_back(source, row);
  }
  return times;
}

SampleRows::Columns SampleRows::Build() const {
  std::vector<std::vector<int64_t>> by_column;
  for (const Group& group : groups_) {
    by_column.push_back(Transposed(group.raw, group.t_ns.size(), group.ids.size()));
  }
  Columns built;
  std::map<std::vector<uint32_t>, size_t> times_of;  // by the groups of a series
  const std::vector<Sources> sources = SourcesOfSeries();
  for (model::SeriesId id = 0; id < sources.size(); ++id) {
    if (sources[id].empty()) continue;
    std::vector<uint32_t> groups;
    std::vector<const int64_t*> columns;
    for (const Source& source : sources[id]) {
      const size_t rows = groups_[source.group].t_ns.size();
      groups.push_back(source.group);
      columns.push_back(by_column[source.group].data() + source.column * rows);
    }
    const auto [found, is_new] = times_of.emplace(std::move(groups), built.times.size());
    if (is_new) built.times.push_back(TimesOf(sources[id]));
    const Times& times = built.times[found->second];
    Column& column = built.columns.emplace_back();
    column.series = id;
    column.times = found->second;
    if (times.places.empty()) column.raw.assign(columns[0], columns[0] + times.t_ns.size());
    for (const auto& [source, row] : times.places) column.raw.push_back(columns[source][row]);
  }
  return built;
}

// Groups that were in use keep their memory: the next rows are mostly like these.
void SampleRows::Clear() {
  const bool in_use = std::none_of(groups_.begin(), groups_.end(),
                                   [](const Group& group) { return group.t_ns.empty(); });
  if (!in_use) {
    groups_.clear();
    group_of_.clear();
    last_group_ = 0;
  }
  for (Group& group : groups_) {
    group.t_ns.clear();
    group.order.clear();
    group.raw.clear();
  }
  group_ = nullptr;
  rows_ = 0;
}

}  // namespace epochmeter::runfile
