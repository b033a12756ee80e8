// SPDX-License-Identifier: Apache-2.0
#include "cli/line_arrivals.h"

#include <algorithm>

namespace epochmeter::cli {

int64_t LineArrivals::Add(int64_t t_ns, std::string_view bytes) {
  lines_ += static_cast<uint64_t>(std::count(bytes.begin(), bytes.end(), '\n'));
  if (!arrivals_.empty()) t_ns = std::max(t_ns, arrivals_.back().t_ns);
  if (!arrivals_.empty() && arrivals_.back().t_ns == t_ns) {
    arrivals_.back().lines = lines_;
    return t_ns;
  }
  if (arrivals_.size() == kMost) arrivals_.pop_front();
  arrivals_.push_back({.t_ns = t_ns, .lines = lines_});
  return t_ns;
}

int64_t LineArrivals::At(const ingest::log::LinePlace& place) const {
  if (arrivals_.empty()) return 0;
  if (place.wall_ns) {
    const auto own =
        std::lower_bound(arrivals_.begin(), arrivals_.end(), *place.wall_ns,
                         [](const Arrival& arrival, int64_t t_ns) { return arrival.t_ns < t_ns; });
    if (own != arrivals_.end() && own->t_ns == *place.wall_ns) return own->t_ns;
  }
  const auto end =
      std::lower_bound(arrivals_.begin(), arrivals_.end(), place.line,
                       [](const Arrival& arrival, uint64_t line) { return arrival.lines < line; });
  return end == arrivals_.end() ? arrivals_.back().t_ns : end->t_ns;
}

}  // namespace epochmeter::cli
