// SPDX-License-Identifier: Apache-2.0
// Integrals of a series over intervals that follow one another, each sample looked at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/facts.h"
#include "diagnose/timeline.h"

namespace epochmeter::diagnose {

// A rate that goes evenly from one value to another. Pieces rise and do not overlap; between them
// nothing is known.
struct Piece {
  int64_t begin_ns = 0, end_ns = 0;
  double begin_value = 0, end_value = 0;
};

struct Integral {
  double value_s = 0;  // of the rate over the covered time
  int64_t covered_ns = 0;
};

class SeriesWalk {
 public:
  explicit SeriesWalk(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {}
  // Of [begin, end); begins must not fall from call to call.
  Integral Take(int64_t begin_ns, int64_t end_ns);
  bool empty() const { return pieces_.empty(); }

 private:
  std::vector<Piece> pieces_;
  size_t at_ = 0;
};

// W out of a counter of J: even between two readings, however far apart; nothing across a reset.
// Empty when it never grew: it is dead.
std::vector<Piece> PowerOfCounter(const model::SeriesColumn& column);
// Even from sample to sample; nothing across a hole.
std::vector<Piece> PowerOfSamples(const model::SeriesColumn& column, int64_t period_ns);

// How busy a GPU was; `source` is the first of "sm_active_ratio", "utilization_ratio",
// "power_of_limit" that it has samples of, empty without any.
struct Activity {
  std::string source;
  std::vector<Piece> pieces;
};
Activity ActivityOf(const Facts& facts, const model::EntityDef& gpu);

// The part of its speed that a GPU lost to heat or hardware limits, where its throttle reasons say
// one: its clock against the median in productive time without one, or, when there is none, against
// its highest. The power cap is not counted: it is normal at full load. `unknown` when reasons were
// seen but there is no clock to say how much they cost.
struct Throttling {
  std::vector<Piece> pieces;
  bool unknown = false;
};
Throttling ThrottlingOf(const Facts& facts, const model::EntityDef& gpu, const Timeline& timeline);

}  // namespace epochmeter::diagnose
