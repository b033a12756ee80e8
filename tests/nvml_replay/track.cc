// SPDX-License-Identifier: Apache-2.0
#include "track.h"

#include <algorithm>
#include <cmath>

#include "collect/nvml/abi_codes.h"

namespace nvml_replay {
namespace {

// The counter's growth since its start, or since the last reset before `play_ns`.
double Counted(const Track& track, const Track::Point& point, int64_t play_ns) {
  double base = point.reading.value;
  int64_t from_ns = point.t_ns;
  for (const int64_t reset_ns : track.resets_ns) {
    if (reset_ns > play_ns || reset_ns < from_ns) continue;
    base = 0;
    from_ns = reset_ns;
  }
  const int64_t elapsed_ns = std::max<int64_t>(play_ns - from_ns, 0);
  const double value = base + track.per_s * static_cast<double>(elapsed_ns) / 1e9;
  return track.wrap > 0 ? std::fmod(value, track.wrap) : value;
}

}  // namespace

Reading Track::At(int64_t play_ns) const {
  if (points.empty()) return {0, kNvmlNotSupported};
  const auto it = std::upper_bound(points.begin(), points.end(), play_ns,
                                   [](int64_t t, const Point& point) { return t < point.t_ns; });
  const Point& point = it == points.begin() ? *it : *(it - 1);
  if (point.reading.code != 0) return point.reading;
  if (wave_ns > 0) {
    const double phase =
        static_cast<double>(std::max<int64_t>(play_ns, 0) % wave_ns) / static_cast<double>(wave_ns);
    return {phase < wave_duty ? wave_high : point.reading.value, 0};
  }
  if (per_s != 0 || wrap > 0 || !resets_ns.empty()) return {Counted(*this, point, play_ns), 0};
  return point.reading;
}

Reading Track::MeanBetween(int64_t from_ns, int64_t to_ns) const {
  double sum = 0;
  int count = 0;
  for (const Point& point : points) {
    if (point.t_ns <= from_ns || point.t_ns > to_ns || point.reading.code != 0) continue;
    sum += point.reading.value;
    ++count;
  }
  return count == 0 ? At(to_ns) : Reading{sum / count, 0};
}

Track Constant(double value) {
  Track track;
  track.points.push_back({0, {value, 0}});
  return track;
}

}  // namespace nvml_replay
