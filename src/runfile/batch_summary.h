// SPDX-License-Identifier: Apache-2.0
// Summaries of many series over many intervals in one pass over a run file: every directory and
// every chunk at an edge is read once, and times and weights once for all series that share them.
// One thread each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runfile/series_store.h"

namespace epochmeter::runfile {

class BatchSummary {
 public:
  // Borrows all three.
  BatchSummary(const FileSeriesStore& store, const std::vector<model::SeriesId>& series,
               const std::vector<model::Interval>& intervals);
  base::Result<model::SeriesStore::SummaryTable> Run();

 private:
  using Set = FileSeriesStore::Set;
  // A series that was asked for.
  struct Row {
    std::optional<int64_t> last_ns;  // of the chunks so far
    bool ordered = true;
  };
  // A time column of the set that is read now, decoded when a chunk at an edge needs it.
  struct Times {
    bool tried = false, good = false;
    std::vector<int64_t> t_ns;
    std::optional<int64_t> previous_ns;  // that `weights` begin with
    int64_t period_ns = 0;
    std::vector<double> weights;
  };

  base::Result<> AddSet(size_t index);
  base::Result<> AddChunk(const Set& set, const Directory& directory, const ChunkRef& chunk,
                          size_t row);
  base::Result<> AddEdge(const Set& set, const Directory& directory, const ChunkRef& chunk,
                         size_t row, const std::vector<size_t>& edges);
  base::Result<Times*> TimesOf(const Set& set, const Directory& directory, const ChunkRef& chunk);
  base::Result<std::string_view> Stored(const Set& set, const StoredPart& part);
  base::Result<> AddRest(size_t row);  // the tail, or everything when it is not in order

  const FileSeriesStore& store_;
  const std::vector<model::SeriesId>& series_;
  const std::vector<model::Interval>& intervals_;
  std::vector<std::vector<size_t>> rows_of_;  // index = series
  std::vector<Row> rows_;
  model::SeriesStore::SummaryTable table_;

  std::vector<size_t> touched_;  // intervals that touch the set that is read now
  std::vector<Times> times_;     // of that set
  std::string data_;             // of that set, once a chunk of it was needed
  bool has_data_ = false;
  std::string part_;  // one stored part, where the data section is too long for memory
  std::vector<int64_t> raw_;
  std::vector<double> values_;
};

}  // namespace epochmeter::runfile
