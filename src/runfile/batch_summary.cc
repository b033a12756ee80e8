// SPDX-License-Identifier: Apache-2.0
#include "runfile/batch_summary.h"

#include <algorithm>
#include <limits>

#include "model/steps.h"

namespace epochmeter::runfile {
namespace {

using model::Interval;
using model::Summary;

constexpr uint64_t kMaxDataBytes = uint64_t{8} << 20;  // of a set that is read as a whole

// The samples from `begin` to before `end`, at least one.
Summary SumsOf(const std::vector<int64_t>& t_ns, const std::vector<double>& values,
               const std::vector<double>& weights, size_t begin, size_t end) {
  Summary sums{.count = end - begin,
               .t_first_ns = t_ns[begin],
               .t_last_ns = t_ns[end - 1],
               .first = values[begin],
               .last = values[end - 1],
               .min = values[begin],
               .max = values[begin]};
  for (size_t i = begin; i < end; ++i) {
    sums.min = std::min(sums.min, values[i]);
    sums.max = std::max(sums.max, values[i]);
    sums.sum += values[i];
    sums.weighted_sum += values[i] * weights[i];
    sums.weight_s += weights[i];
  }
  return sums;
}

}  // namespace

BatchSummary::BatchSummary(const FileSeriesStore& store, const std::vector<model::SeriesId>& series,
                           const std::vector<Interval>& intervals)
    : store_(store),
      series_(series),
      intervals_(intervals),
      rows_of_(store.defs_.size()),
      rows_(series.size()),
      table_(series.size(), std::vector<Summary>(intervals.size())) {
  for (size_t row = 0; row < series.size(); ++row) {
    if (series[row] < rows_of_.size()) rows_of_[series[row]].push_back(row);
  }
}

base::Result<model::SeriesStore::SummaryTable> BatchSummary::Run() {
  if (intervals_.empty()) return std::move(table_);
  Interval hull = intervals_.front();
  for (const Interval interval : intervals_) {
    hull = {std::min(hull.begin_ns, interval.begin_ns), std::max(hull.end_ns, interval.end_ns)};
  }
  for (const size_t set : store_.SetsFor(hull)) EPM_TRY(AddSet(set));
  for (size_t row = 0; row < rows_.size(); ++row) {
    if (series_[row] < store_.defs_.size()) EPM_TRY(AddRest(row));
  }
  return std::move(table_);
}

base::Result<> BatchSummary::AddSet(size_t index) {
  const Set& set = store_.sets_[index];
  touched_.clear();
  for (size_t i = 0; i < intervals_.size(); ++i) {
    if (Touch(set.span, intervals_[i])) touched_.push_back(i);
  }
  EPM_ASSIGN(const Directory directory, store_.ReadDirectory(set));
  times_.assign(directory.times.size(), {});
  has_data_ = false;
  for (const ChunkRef& chunk : directory.chunks) {
    if (chunk.series >= rows_of_.size()) continue;
    for (const size_t row : rows_of_[chunk.series]) EPM_TRY(AddChunk(set, directory, chunk, row));
  }
  return {};
}

base::Result<> BatchSummary::AddChunk(const Set& set, const Directory& directory,
                                      const ChunkRef& chunk, size_t row) {
  const TimeColumnRef& times = directory.times[chunk.time_column];
  const Interval covered{times.first_ns, times.last_ns};
  Row& seen = rows_[row];
  const int64_t earlier_ns =
      std::max(seen.last_ns.value_or(INT64_MIN), chunk.previous_ns().value_or(INT64_MIN));
  seen.ordered = seen.ordered && covered.begin_ns >= earlier_ns;
  seen.last_ns = covered.end_ns;
  if (!seen.ordered) return {};
  std::vector<size_t> edges;
  for (const size_t i : touched_) {
    const Interval interval = intervals_[i];
    const bool whole = interval.Contains(covered.begin_ns) && interval.Contains(covered.end_ns);
    if (whole && chunk.sums_usable) {
      table_[row][i].Append(store_.StoredSums(times, chunk));
    } else if (Touch(covered, interval)) {
      edges.push_back(i);
    }
  }
  return edges.empty() ? base::Result<>() : AddEdge(set, directory, chunk, row, edges);
}

base::Result<> BatchSummary::AddEdge(const Set& set, const Directory& directory,
                                     const ChunkRef& chunk, size_t row,
                                     const std::vector<size_t>& edges) {
  EPM_ASSIGN(const Times* const times, TimesOf(set, directory, chunk));
  if (!times->good) return {};
  EPM_ASSIGN(const std::string_view stored, Stored(set, chunk.part));
  const TimeColumnRef& ref = directory.times[chunk.time_column];
  if (!DecodeRaw(set.id, chunk, ref.count, stored, &raw_)) {
    store_.AddChunkLoss(set, ref, &chunk);
    return {};
  }
  const model::Steps steps(store_.defs_[chunk.series].metric.resolution);
  values_.clear();
  for (const int64_t raw : raw_) values_.push_back(steps.Value(raw));
  for (const size_t i : edges) {
    const auto& t_ns = times->t_ns;
    const auto begin = std::lower_bound(t_ns.begin(), t_ns.end(), intervals_[i].begin_ns);
    const auto end = std::upper_bound(begin, t_ns.end(), intervals_[i].end_ns);
    if (begin == end) continue;
    table_[row][i].Append(SumsOf(t_ns, values_, times->weights,
                                 static_cast<size_t>(begin - t_ns.begin()),
                                 static_cast<size_t>(end - t_ns.begin())));
  }
  return {};
}

base::Result<BatchSummary::Times*> BatchSummary::TimesOf(const Set& set, const Directory& directory,
                                                         const ChunkRef& chunk) {
  Times& times = times_[chunk.time_column];
  const TimeColumnRef& ref = directory.times[chunk.time_column];
  if (!times.tried) {
    EPM_ASSIGN(const std::string_view stored, Stored(set, ref.part));
    times.tried = true;
    times.good = DecodeTimes(set.id, ref, stored, &times.t_ns);
    if (!times.good) store_.AddChunkLoss(set, ref, nullptr);
  }
  const int64_t period_ns = store_.defs_[chunk.series].period_ns;
  const bool same = times.previous_ns == chunk.previous_ns() && times.period_ns == period_ns;
  if (!times.good || (same && !times.weights.empty())) return &times;
  times.previous_ns = chunk.previous_ns();
  times.period_ns = period_ns;
  times.weights.clear();
  std::optional<int64_t> previous = times.previous_ns;
  for (const int64_t t_ns : times.t_ns) {
    times.weights.push_back(previous ? model::SampleWeightSeconds(*previous, t_ns, period_ns) : 0);
    previous = t_ns;
  }
  return &times;
}

base::Result<std::string_view> BatchSummary::Stored(const Set& set, const StoredPart& part) {
  if (set.data_bytes > kMaxDataBytes) {
    EPM_ASSIGN(part_, store_.main_->Read(set.data_offset + part.offset, part.bytes));
    return std::string_view(part_);
  }
  if (!has_data_) {
    EPM_ASSIGN(data_, store_.main_->Read(set.data_offset, static_cast<size_t>(set.data_bytes)));
    has_data_ = true;
  }
  if (part.offset > data_.size()) return std::string_view();
  return std::string_view(data_).substr(part.offset, part.bytes);
}

base::Result<> BatchSummary::AddRest(size_t row) {
  const model::SeriesId id = series_[row];
  const model::SeriesColumn& tail = store_.Tail(id);
  if (rows_[row].ordered && tail.t_ns.empty()) return {};
  for (size_t i = 0; i < intervals_.size(); ++i) {
    const bool of_tail = !tail.t_ns.empty() && tail.t_ns.front() <= intervals_[i].end_ns;
    if (rows_[row].ordered && !of_tail) continue;
    EPM_ASSIGN(table_[row][i], store_.Summarize(id, intervals_[i]));
  }
  return {};
}

}  // namespace epochmeter::runfile
