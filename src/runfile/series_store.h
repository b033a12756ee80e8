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

// Any number of threads. A damaged chunk costs itself: its samples are missing from Read and from
// the edges of Summarize, while its sums, which have their own checksum, still count.
class FileSeriesStore : public model::SeriesStore {
 public:
  // `tail` are the samples that are not sealed yet, each column in order of time.
  FileSeriesStore(std::unique_ptr<File> main, std::vector<ChunkSetRef> sets,
                  std::vector<model::SeriesDef> series,
                  std::map<model::SeriesId, model::SeriesColumn> tail);

  base::Result<model::Summary> Summarize(model::SeriesId series,
                                         model::Interval interval) const override;
  base::Result<model::SeriesColumn> Read(model::SeriesId series,
                                         model::Interval interval) const override;
  std::vector<model::Loss> LossesFound() const override;

 private:
  struct Chunk {
    uint64_t data_offset = 0;  // of the set's data section in the file
    TimeColumnRef times;
    ChunkRef ref;
  };
  // Chunks of one series; `ordered` when none begins before the one before it ends.
  struct Series {
    std::vector<Chunk> chunks;
    bool ordered = true;
  };

  base::Result<> Load() const;
  base::Result<> LoadSet(const ChunkSetRef& set) const;
  void AddLoss(uint64_t offset, uint64_t bytes, int64_t t_ns, uint64_t count,
               const std::string& what) const;
  // Empty when the chunk is damaged.
  base::Result<model::SeriesColumn> Decode(const Chunk& chunk) const;
  // All samples of a series whose chunks overlap, in order of time.
  base::Result<model::SeriesColumn> Merge(model::SeriesId series) const;
  const model::SeriesColumn& Tail(model::SeriesId series) const;
  const Series* Find(model::SeriesId series) const;
  model::Summary StoredSums(const Chunk& chunk) const;

  const std::unique_ptr<File> main_;
  const std::vector<ChunkSetRef> sets_;
  const std::vector<model::SeriesDef> defs_;
  const std::map<model::SeriesId, model::SeriesColumn> tail_;
  const model::SeriesColumn no_samples_;

  mutable std::mutex mutex_;  // of all below; `series_` is constant once loaded
  mutable bool loaded_ = false;
  mutable std::vector<Series> series_;  // index = id
  mutable std::set<uint64_t> damaged_offsets_;
  mutable std::vector<model::Loss> losses_;
};

}  // namespace epochmeter::runfile
