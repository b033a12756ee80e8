// SPDX-License-Identifier: Apache-2.0
// Samples between two seals, row by row as they come, and turned into columns when they are sealed:
// one time column for all series that were sampled together. One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "model/record.h"

namespace epochmeter::runfile {

class SampleRows {
 public:
  // Begins a row: Put is called once for each of its samples, in their order.
  void BeginRow(const model::Samples& samples);
  void Put(int64_t raw) { group_->raw.push_back(raw); }

  // Columns of the samples so far. Those of one series may be in several groups of rows.
  struct Times {
    std::vector<int64_t> t_ns;  // not falling; samples of one instant in the order they came
    // Where each sample stands: in which source of its series, and in which row of that.
    std::vector<std::pair<uint32_t, uint32_t>> places;  // empty: there is one source, all its rows
  };
  struct Column {
    model::SeriesId series = 0;
    size_t times = 0;
    std::vector<int64_t> raw;
  };
  struct Columns {
    std::vector<Times> times;
    std::vector<Column> columns;  // by rising id of the series
  };
  Columns Build() const;

  // Calls `each` for every series with the latest time of its samples, once for each of its groups.
  template <typename Each>
  void ForEachLatest(const Each& each) const {
    for (const Group& group : groups_) {
      if (group.t_ns.empty()) continue;
      const int64_t latest_ns = *std::max_element(group.t_ns.begin(), group.t_ns.end());
      for (const model::SeriesId id : group.ids) each(id, latest_ns);
    }
  }
  void Clear();

 private:
  // Rows of the same series in the same order.
  struct Group {
    std::vector<model::SeriesId> ids;
    std::vector<int64_t> t_ns;
    std::vector<uint32_t> order;  // of the row among those of all groups
    std::vector<int64_t> raw;     // row by row
  };
  struct Source {
    uint32_t group = 0, column = 0;
  };
  using Sources = std::vector<Source>;

  size_t GroupOf(const model::Samples& samples);
  std::vector<Sources> SourcesOfSeries() const;
  Times TimesOf(const Sources& sources) const;

  std::vector<Group> groups_;
  std::map<std::vector<model::SeriesId>, size_t> group_of_;
  size_t last_group_ = 0;
  Group* group_ = nullptr;  // of the row that is being put
  uint32_t rows_ = 0;
};

}  // namespace epochmeter::runfile
