// SPDX-License-Identifier: Apache-2.0
#include "runfile/series_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

namespace epochmeter::runfile {
namespace {

using model::Interval;
using model::SeriesColumn;
using model::Summary;

constexpr uint64_t kMaxReadValues = uint64_t{1} << 28;

void AppendWithin(const SeriesColumn& from, Interval interval, SeriesColumn* to) {
  for (size_t i = 0; i < from.t_ns.size(); ++i) {
    if (!interval.Contains(from.t_ns[i])) continue;
    to->t_ns.push_back(from.t_ns[i]);
    to->value.push_back(from.value[i]);
  }
}

// Adds the samples of `column` that lie in the interval; `previous` is the sample before them.
void AddWithin(const SeriesColumn& column, Interval interval, std::optional<int64_t> previous,
               int64_t period_ns, Summary* summary) {
  for (size_t i = 0; i < column.t_ns.size(); ++i) {
    const int64_t t_ns = column.t_ns[i];
    const double weight = previous ? model::SampleWeightSeconds(*previous, t_ns, period_ns) : 0;
    previous = t_ns;
    if (interval.Contains(t_ns)) summary->Add(t_ns, column.value[i], weight);
  }
}

}  // namespace

FileSeriesStore::FileSeriesStore(std::unique_ptr<File> main, std::vector<ChunkSetRef> sets,
                                 std::vector<model::SeriesDef> series,
                                 std::map<model::SeriesId, SeriesColumn> tail)
    : main_(std::move(main)),
      sets_(std::move(sets)),
      defs_(std::move(series)),
      tail_(std::move(tail)) {}

void FileSeriesStore::AddLoss(uint64_t offset, uint64_t bytes, int64_t t_ns, uint64_t count,
                              const std::string& what) const {
  if (!damaged_offsets_.insert(offset).second) return;
  losses_.push_back({.t_ns = t_ns,
                     .severity = model::LossSeverity::kDataLoss,
                     .kind = "file.damaged_chunk",
                     .count = count,
                     .detail = fmt::format("{} values: bytes {} to {} of {}: {}", count, offset,
                                           offset + bytes, main_->path(), what),
                     .help = "Copy the file again if the original is intact; the rest is "
                             "readable."});
}

base::Result<> FileSeriesStore::LoadSet(const ChunkSetRef& set) const {
  const SectionRef* section = set.prologue->Find(SectionKind::kDirectory);
  const SectionRef* data = set.prologue->Find(SectionKind::kData);
  if (section == nullptr || data == nullptr) return {};
  const uint64_t offset = set.frame.payload_offset() + section->offset;
  EPM_ASSIGN(const std::string stored,
             main_->Read(offset, static_cast<size_t>(section->stored_bytes)));
  const std::optional<std::string> content = DecodeSection(set.frame.header.id, *section, stored);
  Directory directory;
  if (!content || !DecodeDirectory(*content, data->stored_bytes, &directory)) {
    AddLoss(offset, section->stored_bytes, set.prologue->span.value_or(Interval{0, 0}).begin_ns,
            set.prologue->values, "the directory of a chunk set is damaged");
    return {};
  }
  for (const ChunkRef& ref : directory.chunks) {
    if (ref.series >= series_.size()) continue;
    Series& series = series_[ref.series];
    const TimeColumnRef& times = directory.times[ref.time_column];
    if (!series.chunks.empty() && times.first_ns < series.chunks.back().times.last_ns) {
      series.ordered = false;
    }
    series.chunks.push_back(
        {.data_offset = set.frame.payload_offset() + data->offset, .times = times, .ref = ref});
  }
  return {};
}

base::Result<> FileSeriesStore::Load() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (loaded_) return {};
  series_.assign(defs_.size(), {});
  for (const ChunkSetRef& set : sets_) {
    if (set.prologue && !set.ignored) EPM_TRY(LoadSet(set));
  }
  for (const auto& [id, column] : tail_) {
    if (id >= series_.size() || series_[id].chunks.empty() || column.t_ns.empty()) continue;
    if (column.t_ns.front() < series_[id].chunks.back().times.last_ns) series_[id].ordered = false;
  }
  loaded_ = true;
  return {};
}

const SeriesColumn& FileSeriesStore::Tail(model::SeriesId series) const {
  const auto found = tail_.find(series);
  return found == tail_.end() ? no_samples_ : found->second;
}

base::Result<SeriesColumn> FileSeriesStore::Decode(const Chunk& chunk) const {
  SeriesColumn column;
  const StoredPart& times = chunk.times.part;
  const StoredPart& part = chunk.ref.part;
  EPM_ASSIGN(const std::string time_bytes,
             main_->Read(chunk.data_offset + times.offset, static_cast<size_t>(times.bytes)));
  EPM_ASSIGN(const std::string raw_bytes,
             main_->Read(chunk.data_offset + part.offset, static_cast<size_t>(part.bytes)));
  // The file id is in every frame; the sets of one file share it.
  const FileId& id = sets_.front().frame.header.id;
  std::vector<int64_t> raw;
  const bool good_times = DecodeTimes(id, chunk.times, time_bytes, &column.t_ns);
  if (!good_times || !DecodeRaw(id, chunk.ref, chunk.times.count, raw_bytes, &raw)) {
    const StoredPart& bad = good_times ? part : times;
    const std::lock_guard<std::mutex> lock(mutex_);
    AddLoss(chunk.data_offset + bad.offset, bad.bytes, chunk.times.first_ns, chunk.times.count,
            good_times ? fmt::format("chunk of series {}", chunk.ref.series)
                       : "times shared by the series of a chunk set");
    return SeriesColumn{};
  }
  const double resolution = defs_[chunk.ref.series].metric.resolution;
  column.value.reserve(raw.size());
  for (const int64_t step : raw) column.value.push_back(model::ValueFromRaw(step, resolution));
  return column;
}

base::Result<SeriesColumn> FileSeriesStore::Merge(model::SeriesId series) const {
  SeriesColumn all;
  for (const Chunk& chunk : series_[series].chunks) {
    EPM_ASSIGN(const SeriesColumn column, Decode(chunk));
    AppendWithin(column, {}, &all);
  }
  AppendWithin(Tail(series), {}, &all);
  std::vector<size_t> order(all.t_ns.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&all](size_t a, size_t b) { return all.t_ns[a] < all.t_ns[b]; });
  SeriesColumn sorted;
  for (const size_t i : order) {
    sorted.t_ns.push_back(all.t_ns[i]);
    sorted.value.push_back(all.value[i]);
  }
  return sorted;
}

Summary FileSeriesStore::StoredSums(const Chunk& chunk) const {
  const double resolution = defs_[chunk.ref.series].metric.resolution;
  return {.count = chunk.times.count,
          .t_first_ns = chunk.times.first_ns,
          .t_last_ns = chunk.times.last_ns,
          .first = model::ValueFromRaw(chunk.ref.first, resolution),
          .last = model::ValueFromRaw(chunk.ref.last, resolution),
          .min = model::ValueFromRaw(chunk.ref.min, resolution),
          .max = model::ValueFromRaw(chunk.ref.max, resolution),
          .sum = chunk.ref.sum,
          .weighted_sum = chunk.ref.weighted_sum,
          .weight_s = chunk.ref.weight_s};
}

const FileSeriesStore::Series* FileSeriesStore::Find(model::SeriesId series) const {
  return series < series_.size() ? &series_[series] : nullptr;
}

base::Result<Summary> FileSeriesStore::Summarize(model::SeriesId id, Interval interval) const {
  EPM_TRY(Load());
  Summary summary;
  const Series* series = Find(id);
  if (series == nullptr) return summary;
  const int64_t period_ns = defs_[id].period_ns;
  if (!series->ordered) {
    EPM_ASSIGN(const SeriesColumn all, Merge(id));
    AddWithin(all, interval, {}, period_ns, &summary);
    return summary;
  }
  std::optional<int64_t> previous;
  for (const Chunk& chunk : series->chunks) {
    previous = chunk.times.last_ns;
    if (chunk.times.last_ns < interval.begin_ns || chunk.times.first_ns > interval.end_ns) continue;
    const bool whole = interval.Contains(chunk.times.first_ns) && interval.Contains(*previous);
    if (whole && chunk.ref.sums_usable) {
      summary.Append(StoredSums(chunk));
      continue;
    }
    EPM_ASSIGN(const SeriesColumn column, Decode(chunk));
    AddWithin(column, interval, chunk.ref.previous_ns, period_ns, &summary);
  }
  AddWithin(Tail(id), interval, previous, period_ns, &summary);
  return summary;
}

base::Result<SeriesColumn> FileSeriesStore::Read(model::SeriesId id, Interval interval) const {
  EPM_TRY(Load());
  SeriesColumn part;
  const Series* series = Find(id);
  if (series == nullptr) return part;
  uint64_t values = 0;
  for (const Chunk& chunk : series->chunks) values += chunk.times.count;
  if (values > kMaxReadValues) {
    return base::Error{.what = "too many values in one series",
                       .where = main_->path(),
                       .why = fmt::format("{} values", values),
                       .what_to_do = "read a shorter interval"};
  }
  if (!series->ordered) {
    EPM_ASSIGN(const SeriesColumn all, Merge(id));
    AppendWithin(all, interval, &part);
    return part;
  }
  for (const Chunk& chunk : series->chunks) {
    if (chunk.times.last_ns < interval.begin_ns || chunk.times.first_ns > interval.end_ns) continue;
    EPM_ASSIGN(const SeriesColumn column, Decode(chunk));
    AppendWithin(column, interval, &part);
  }
  AppendWithin(Tail(id), interval, &part);
  return part;
}

std::vector<model::Loss> FileSeriesStore::LossesFound() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return losses_;
}

}  // namespace epochmeter::runfile
