// SPDX-License-Identifier: Apache-2.0
// Values of a run file on demand: sums from the directories, samples from the chunks at the edges.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "model/run.h"
#include "runfile/run_files.h"

namespace epochmeter::runfile {

inline bool Touch(model::Interval a, model::Interval b) {
  return a.begin_ns <= b.end_ns && b.begin_ns <= a.end_ns;
}

// Any number of threads. Only the directories of chunk sets that an interval touches are read; they
// are kept up to a limit. A damaged chunk costs itself: its samples are missing from Read and from
// the edges of Summarize, while its sums, which have their own checksum, still count.
class FileSeriesStore : public model::SeriesStore {
 public:
  // `tail` are the samples that are not sealed yet, each column in order of time.
  FileSeriesStore(std::unique_ptr<File> main, std::vector<ChunkSetRef> sets,
                  std::vector<model::SeriesDef> series,
                  std::map<model::SeriesId, model::SeriesColumn> tail);

  base::Result<model::Summary> Summarize(model::SeriesId series,
                                         model::Interval interval) const override;
  // Set by set, each chunk at most once, with no more than one directory in memory.
  base::Result<SummaryTable> SummarizeAll(
      const std::vector<model::SeriesId>& series,
      const std::vector<model::Interval>& intervals) const override;
  base::Result<model::SeriesColumn> Read(model::SeriesId series,
                                         model::Interval interval) const override;
  std::vector<model::Loss> LossesFound() const override;

 private:
  friend class BatchSummary;
  // Places in the file. `span` is of everything in the set.
  struct Set {
    FileId id{};
    model::Interval span;
    uint64_t directory_offset = 0, data_offset = 0, data_bytes = 0, values = 0;
    SectionRef directory;
  };
  struct Chunk {
    size_t set = 0;
    TimeColumnRef times;
    ChunkRef ref;
  };
  // Of one series, in the order of the file.
  struct Chunks {
    std::vector<Chunk> list;
    bool ordered = true;  // none begins before a sample that came earlier
  };

  // The directory of a set, kept or in `scratch`; empty when damaged.
  base::Result<const Directory*> DirectoryOf(size_t set, Directory* scratch) const;
  base::Result<Directory> ReadDirectory(const Set& set) const;
  // The sets that may matter for the interval: those that touch it, and later ones that hold
  // earlier times.
  std::vector<size_t> SetsFor(model::Interval interval) const;
  base::Result<Chunks> ChunksOf(model::SeriesId series, model::Interval interval) const;
  base::Result<std::vector<Chunk>> ChunksIn(const std::vector<size_t>& sets,
                                            model::SeriesId series) const;
  // The time of the last sealed sample of a series, wherever it is.
  base::Result<std::optional<int64_t>> LastSealed(model::SeriesId series) const;
  // Empty when the chunk is damaged.
  base::Result<model::SeriesColumn> Decode(const Chunk& chunk) const;
  // All samples of a series whose chunks overlap, in order of time.
  base::Result<model::SeriesColumn> Merge(model::SeriesId series) const;
  const model::SeriesColumn& Tail(model::SeriesId series) const;
  model::Summary StoredSums(const TimeColumnRef& times, const ChunkRef& chunk) const;
  void AddLoss(uint64_t offset, uint64_t bytes, int64_t t_ns, uint64_t count,
               const std::string& what) const;
  void AddChunkLoss(const Set& set, const TimeColumnRef& times, const ChunkRef* chunk) const;

  const std::unique_ptr<File> main_;
  const std::vector<Set> sets_;
  const std::vector<model::SeriesDef> defs_;
  const std::map<model::SeriesId, model::SeriesColumn> tail_;
  const model::SeriesColumn no_samples_;

  mutable std::mutex mutex_;                                    // of all below
  mutable std::vector<std::unique_ptr<const Directory>> kept_;  // index as sets_; never taken back
  mutable size_t kept_bytes_ = 0;
  mutable std::set<uint64_t> damaged_offsets_;
  mutable std::vector<model::Loss> losses_;
};

}  // namespace epochmeter::runfile
