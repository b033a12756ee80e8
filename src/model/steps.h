// SPDX-License-Identifier: Apache-2.0
// How values become the integers that a run file stores, for loops over many of them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace epochmeter::model {

// Half away from zero, as llround, but without a call. `value` must fit.
inline int64_t RoundToInt(double value) {
  const auto whole = static_cast<int64_t>(value);
  const double rest = value - static_cast<double>(whole);  // exact below 2^52, 0 above
  return whole + static_cast<int64_t>(rest >= 0.5) - static_cast<int64_t>(rest <= -0.5);
}

// The stored integers of one resolution. A resolution of 0 stores the double's bits. For steps
// below one, division by the whole number of steps gives the nearest double (8600 steps of 1e-4
// read back as 0.86, not 0.8600000000000001). Values beyond int64 saturate.
class Steps {
 public:
  explicit Steps(double resolution)
      : resolution_(resolution),
        fraction_(resolution < 1),
        per_unit_(fraction_ && resolution != 0 ? std::round(1 / resolution) : 1) {}

  int64_t Raw(double value) const {
    if (resolution_ == 0) return std::bit_cast<int64_t>(value);
    const double steps = fraction_ ? value * per_unit_ : value / resolution_;
    if (!(steps > -9.2e18)) return std::numeric_limits<int64_t>::min();
    if (!(steps < 9.2e18)) return std::numeric_limits<int64_t>::max();
    return RoundToInt(steps);
  }
  double Value(int64_t raw) const {
    if (resolution_ == 0) return std::bit_cast<double>(raw);
    const auto steps = static_cast<double>(raw);
    return fraction_ ? steps / per_unit_ : steps * resolution_;
  }
  // The bits of doubles, which have no order of integers.
  bool bits() const { return resolution_ == 0; }

 private:
  double resolution_;
  bool fraction_;
  double per_unit_;
};

}  // namespace epochmeter::model
