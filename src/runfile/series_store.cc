// SPDX-License-Identifier: Apache-2.0
#include "runfile/series_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "model/steps.h"
#include "runfile/batch_summary.h"

namespace epochmeter::runfile {
namespace {

using model::Interval;
using model::SeriesColumn;
using model::Summary;

constexpr uint64_t kMaxReadValues = uint64_t{1} << 28;
constexpr size_t kMaxKeptBytes = size_t{128} << 20;  // of directories: five weeks of 240 series

void AppendWithin(const SeriesColumn& from, Interval interval, SeriesColumn* to) {
  const auto begin = std::lower_bound(from.t_ns.begin(), from.t_ns.end(), interval.begin_ns);
  const auto end = std::upper_bound(begin, from.t_ns.end(), interval.end_ns);
  to->t_ns.insert(to->t_ns.end(), begin, end);
  to->value.insert(to->value.end(), from.value.begin() + (begin - from.t_ns.begin()),
                   from.value.begin() + (end - from.t_ns.begin()));
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

size_t BytesOf(const Directory& directory) {
  return directory.times.capacity() * sizeof(TimeColumnRef) +
         directory.chunks.capacity() * sizeof(ChunkRef);
}

}  // namespace

FileSeriesStore::FileSeriesStore(std::unique_ptr<File> main, std::vector<ChunkSetRef> sets,
                                 std::vector<model::SeriesDef> series,
                                 std::map<model::SeriesId, SeriesColumn> tail)
    : main_(std::move(main)),
      sets_([&sets] {
        std::vector<Set> places;
        for (const ChunkSetRef& set : sets) {
          if (!set.prologue || set.ignored || !set.prologue->span) continue;
          const SectionRef* directory = set.prologue->Find(SectionKind::kDirectory);
          const SectionRef* data = set.prologue->Find(SectionKind::kData);
          if (directory == nullptr || data == nullptr) continue;
          places.push_back({.id = set.frame.header.id,
                            .span = *set.prologue->span,
                            .directory_offset = set.frame.payload_offset() + directory->offset,
                            .data_offset = set.frame.payload_offset() + data->offset,
                            .data_bytes = data->stored_bytes,
                            .values = set.prologue->values,
                            .directory = *directory});
        }
        return places;
      }()),
      defs_(std::move(series)),
      tail_(std::move(tail)),
      kept_(sets_.size()) {}

void FileSeriesStore::AddLoss(uint64_t offset, uint64_t bytes, int64_t t_ns, uint64_t count,
                              const std::string& what) const {
  const std::lock_guard<std::mutex> lock(mutex_);
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

// `chunk` is null when it is the times that are damaged.
void FileSeriesStore::AddChunkLoss(const Set& set, const TimeColumnRef& times,
                                   const ChunkRef* chunk) const {
  const StoredPart& bad = chunk != nullptr ? chunk->part : times.part;
  AddLoss(set.data_offset + bad.offset, bad.bytes, times.first_ns, times.count,
          chunk != nullptr ? fmt::format("chunk of series {}", chunk->series)
                           : "times shared by the series of a chunk set");
}

base::Result<Directory> FileSeriesStore::ReadDirectory(const Set& set) const {
  EPM_ASSIGN(const std::string stored,
             main_->Read(set.directory_offset, static_cast<size_t>(set.directory.stored_bytes)));
  const std::optional<std::string> content = DecodeSection(set.id, set.directory, stored);
  Directory directory;
  if (content && DecodeDirectory(*content, set.data_bytes, &directory)) return directory;
  AddLoss(set.directory_offset, set.directory.stored_bytes, set.span.begin_ns, set.values,
          "the directory of a chunk set is damaged");
  return Directory{};
}

base::Result<const Directory*> FileSeriesStore::DirectoryOf(size_t set, Directory* scratch) const {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (kept_[set] != nullptr) return kept_[set].get();
  }
  EPM_ASSIGN(*scratch, ReadDirectory(sets_[set]));
  const std::lock_guard<std::mutex> lock(mutex_);
  const size_t bytes = BytesOf(*scratch);
  if (kept_[set] == nullptr && kept_bytes_ + bytes <= kMaxKeptBytes) {
    kept_bytes_ += bytes;
    kept_[set] = std::make_unique<const Directory>(std::move(*scratch));
  }
  return kept_[set] != nullptr ? kept_[set].get() : scratch;
}

std::vector<size_t> FileSeriesStore::SetsFor(Interval interval) const {
  std::vector<size_t> sets;
  for (size_t i = 0; i < sets_.size(); ++i) {
    const bool late = !sets.empty() && sets_[i].span.begin_ns < interval.begin_ns;
    if (late || Touch(sets_[i].span, interval)) sets.push_back(i);
  }
  return sets;
}

base::Result<std::vector<FileSeriesStore::Chunk>> FileSeriesStore::ChunksIn(
    const std::vector<size_t>& sets, model::SeriesId series) const {
  std::vector<Chunk> chunks;
  Directory scratch;
  for (const size_t set : sets) {
    EPM_ASSIGN(const Directory* const directory, DirectoryOf(set, &scratch));
    auto ref = directory->chunks.begin();
    if (directory->by_series) {
      ref = std::lower_bound(
          ref, directory->chunks.end(), series,
          [](const ChunkRef& chunk, model::SeriesId id) { return chunk.series < id; });
    }
    for (; ref != directory->chunks.end(); ++ref) {
      if (ref->series == series) {
        chunks.push_back({.set = set, .times = directory->times[ref->time_column], .ref = *ref});
      } else if (directory->by_series) {
        break;
      }
    }
  }
  return chunks;
}

base::Result<FileSeriesStore::Chunks> FileSeriesStore::ChunksOf(model::SeriesId series,
                                                                Interval interval) const {
  Chunks chunks;
  EPM_ASSIGN(chunks.list, ChunksIn(SetsFor(interval), series));
  std::optional<int64_t> last_ns;
  for (const Chunk& chunk : chunks.list) {
    const int64_t earlier_ns =
        std::max(last_ns.value_or(INT64_MIN), chunk.ref.previous_ns().value_or(INT64_MIN));
    chunks.ordered = chunks.ordered && chunk.times.first_ns >= earlier_ns;
    last_ns = chunk.times.last_ns;
  }
  const SeriesColumn& tail = Tail(series);
  if (tail.t_ns.empty() || tail.t_ns.front() > interval.end_ns) return chunks;
  EPM_ASSIGN(const std::optional<int64_t> sealed_ns, LastSealed(series));
  if (sealed_ns && tail.t_ns.front() < *sealed_ns) chunks.ordered = false;
  return chunks;
}

base::Result<std::optional<int64_t>> FileSeriesStore::LastSealed(model::SeriesId series) const {
  for (size_t set = sets_.size(); set > 0; --set) {
    EPM_ASSIGN(const std::vector<Chunk> chunks, ChunksIn({set - 1}, series));
    if (!chunks.empty()) return std::optional(chunks.back().times.last_ns);
  }
  return std::optional<int64_t>();
}

const SeriesColumn& FileSeriesStore::Tail(model::SeriesId series) const {
  const auto found = tail_.find(series);
  return found == tail_.end() ? no_samples_ : found->second;
}

base::Result<SeriesColumn> FileSeriesStore::Decode(const Chunk& chunk) const {
  SeriesColumn column;
  const Set& set = sets_[chunk.set];
  const StoredPart& times = chunk.times.part;
  const StoredPart& part = chunk.ref.part;
  EPM_ASSIGN(const std::string time_bytes,
             main_->Read(set.data_offset + times.offset, times.bytes));
  EPM_ASSIGN(const std::string raw_bytes, main_->Read(set.data_offset + part.offset, part.bytes));
  std::vector<int64_t> raw;
  const bool good_times = DecodeTimes(set.id, chunk.times, time_bytes, &column.t_ns);
  if (!good_times || !DecodeRaw(set.id, chunk.ref, chunk.times.count, raw_bytes, &raw)) {
    AddChunkLoss(set, chunk.times, good_times ? &chunk.ref : nullptr);
    return SeriesColumn{};
  }
  const model::Steps steps(defs_[chunk.ref.series].metric.resolution);
  column.value.reserve(raw.size());
  for (const int64_t step : raw) column.value.push_back(steps.Value(step));
  return column;
}

base::Result<SeriesColumn> FileSeriesStore::Merge(model::SeriesId series) const {
  std::vector<size_t> sets(sets_.size());
  std::iota(sets.begin(), sets.end(), size_t{0});
  EPM_ASSIGN(const std::vector<Chunk> chunks, ChunksIn(sets, series));
  SeriesColumn all;
  for (const Chunk& chunk : chunks) {
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

Summary FileSeriesStore::StoredSums(const TimeColumnRef& times, const ChunkRef& chunk) const {
  const model::Steps steps(defs_[chunk.series].metric.resolution);
  return {.count = times.count,
          .t_first_ns = times.first_ns,
          .t_last_ns = times.last_ns,
          .first = steps.Value(chunk.first),
          .last = steps.Value(chunk.last),
          .min = steps.Value(chunk.min),
          .max = steps.Value(chunk.max),
          .sum = chunk.sum,
          .weighted_sum = chunk.weighted_sum,
          .weight_s = chunk.weight_s};
}

base::Result<Summary> FileSeriesStore::Summarize(model::SeriesId id, Interval interval) const {
  Summary summary;
  if (id >= defs_.size()) return summary;
  EPM_ASSIGN(const Chunks chunks, ChunksOf(id, interval));
  const int64_t period_ns = defs_[id].period_ns;
  if (!chunks.ordered) {
    EPM_ASSIGN(const SeriesColumn all, Merge(id));
    AddWithin(all, interval, {}, period_ns, &summary);
    return summary;
  }
  for (const Chunk& chunk : chunks.list) {
    const Interval covered{chunk.times.first_ns, chunk.times.last_ns};
    if (!Touch(covered, interval)) continue;
    const bool whole = interval.Contains(covered.begin_ns) && interval.Contains(covered.end_ns);
    if (whole && chunk.ref.sums_usable) {
      summary.Append(StoredSums(chunk.times, chunk.ref));
      continue;
    }
    EPM_ASSIGN(const SeriesColumn column, Decode(chunk));
    AddWithin(column, interval, chunk.ref.previous_ns(), period_ns, &summary);
  }
  const SeriesColumn& tail = Tail(id);
  if (tail.t_ns.empty() || !Touch({tail.t_ns.front(), tail.t_ns.back()}, interval)) return summary;
  EPM_ASSIGN(const std::optional<int64_t> previous, LastSealed(id));
  AddWithin(tail, interval, previous, period_ns, &summary);
  return summary;
}

base::Result<model::SeriesStore::SummaryTable> FileSeriesStore::SummarizeAll(
    const std::vector<model::SeriesId>& series, const std::vector<Interval>& intervals) const {
  return BatchSummary(*this, series, intervals).Run();
}

base::Result<SeriesColumn> FileSeriesStore::Read(model::SeriesId id, Interval interval) const {
  SeriesColumn part;
  if (id >= defs_.size()) return part;
  EPM_ASSIGN(const Chunks chunks, ChunksOf(id, interval));
  uint64_t values = 0;
  for (const Chunk& chunk : chunks.list) values += chunk.times.count;
  if (values > kMaxReadValues) {
    return base::Error{.what = "too many values in one series",
                       .where = main_->path(),
                       .why = fmt::format("{} values", values),
                       .what_to_do = "read a shorter interval"};
  }
  if (!chunks.ordered) {
    EPM_ASSIGN(const SeriesColumn all, Merge(id));
    AppendWithin(all, interval, &part);
    return part;
  }
  part.t_ns.reserve(static_cast<size_t>(values));
  part.value.reserve(static_cast<size_t>(values));
  for (const Chunk& chunk : chunks.list) {
    if (!Touch({chunk.times.first_ns, chunk.times.last_ns}, interval)) continue;
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
