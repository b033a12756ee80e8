// SPDX-License-Identifier: Apache-2.0
// M4 thinning: of each bucket of samples the first, lowest, highest and last survive. A line
// through these lights the pixels that a line through all samples would, so that spikes are never
// lost.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace epochmeter::model {

// One bucket on its way, as indexes into a column of values. Indexes must rise.
class M4Bucket {
 public:
  void Add(size_t at, const std::vector<double>& values) {
    if (!any_) first_ = low_ = high_ = at;
    any_ = true;
    // A NaN is neither; it survives as the first or the last only.
    if (!(values[low_] <= values[at])) low_ = at;
    if (!(values[high_] >= values[at])) high_ = at;
    last_ = at;
  }

  // Gives the survivors, each once and in order, and empties the bucket.
  template <typename Take>
  void Flush(Take take) {
    if (!any_) return;
    std::array<size_t, 4> order = {first_, low_, high_, last_};
    std::sort(order.begin(), order.end());
    for (size_t i = 0; i < order.size(); ++i) {
      if (i == 0 || order[i] != order[i - 1]) take(order[i]);
    }
    any_ = false;
  }

 private:
  size_t first_ = 0, low_ = 0, high_ = 0, last_ = 0;
  bool any_ = false;
};

}  // namespace epochmeter::model
