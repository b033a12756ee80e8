// SPDX-License-Identifier: Apache-2.0
// What a writer holds between two seals: the definitions of everything so far, and the records
// since the last seal in the shape of the next chunk set. One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/record.h"
#include "model/steps.h"
#include "runfile/chunk_set.h"
#include "runfile/sample_rows.h"

namespace epochmeter::runfile {

inline constexpr uint32_t kMaxId = 1u << 18;  // of entities and series

class Unsealed {
 public:
  // Puts values in steps of their resolutions, and takes out those of undefined series and those
  // that can't be stored in such steps. Returns how many it took out.
  uint64_t MakeStorable(model::Samples& samples) const;
  // The value in steps; nothing for one that can't be stored in them.
  static std::optional<double> Storable(const model::Steps& steps, double value);

  // Takes a record whose samples are storable. `encoded` is the record's encoding.
  void Add(const model::Record& record, std::string_view encoded);
  // The time of the last sealed sample of a series, in a resumed file.
  void SetPrevious(model::SeriesId series, int64_t t_ns);

  void SeeTime(int64_t t_ns) { last_ns_ = std::max(last_ns_, t_ns); }

  // All definitions so far, encoded.
  std::string Schema() const;
  ChunkSet Build() const;
  // Takes back the output that was added last; `bytes` is the size of its encoding.
  void DropLastLog(size_t bytes);
  // Forgets what Build gave, but not the definitions.
  void Clear();

  bool empty() const { return bytes_ == 0; }
  size_t bytes() const { return bytes_; }
  uint64_t ticks() const { return ticks_; }  // samples of the series that has most
  uint64_t values() const { return values_; }
  int64_t last_ns() const { return last_ns_; }  // the latest time seen
  const std::optional<model::RunInfo>& info() const { return info_; }
  const std::vector<model::EntityDef>& entities() const { return entities_; }
  const std::vector<model::SeriesDef>& series() const { return series_; }

 private:
  struct Series {
    bool defined = false;
    model::Steps steps{0};
    std::optional<int64_t> previous_ns;  // latest sample that is sealed
    uint64_t count = 0;                  // of unsealed samples
  };

  void AddSamples(const model::Samples& samples);
  void DefineSeries(const model::SeriesDef& def);

  std::optional<model::RunInfo> info_;
  std::vector<model::EntityDef> entities_;
  std::vector<bool> entity_defined_;
  std::vector<model::SeriesDef> series_;
  std::vector<Series> state_;  // index = series id
  SampleRows rows_;
  std::string events_, log_, other_;
  size_t bytes_ = 0;
  uint64_t ticks_ = 0, values_ = 0;
  int64_t last_ns_ = 0;
};

}  // namespace epochmeter::runfile
