// SPDX-License-Identifier: Apache-2.0
// When the lines of a captured stream came. One thread; memory is bounded: of lines that are long
// past only the order is known.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>

#include "ingest/log/log_line.h"

namespace epochmeter::cli {

class LineArrivals {
 public:
  // The next bytes; gives the time to feed them with, which never goes back.
  int64_t Add(int64_t t_ns, std::string_view bytes);
  // When what stands there came: with the bytes that `place.wall_ns` names, where the line has no
  // stamp of its own, else with the end of its line.
  int64_t At(const ingest::log::LinePlace& place) const;

 private:
  struct Arrival {
    int64_t t_ns = 0;
    uint64_t lines = 0;  // ended with it
  };
  static constexpr size_t kMost = 8192;
  std::deque<Arrival> arrivals_;
  uint64_t lines_ = 0;
};

}  // namespace epochmeter::cli
