// SPDX-License-Identifier: Apache-2.0
// The values of a stretch of time in the order of time.
#pragma once

#include <cstdint>
#include <vector>

#include "export/time_chunks.h"

namespace epochmeter::exporting {

struct ValueRef {
  int64_t t_ns;
  size_t series;  // index in the list of series
  double value;
};

// By time, values of one instant in the order of the series.
std::vector<ValueRef> ValuesInOrder(const TimeChunk& chunk);

}  // namespace epochmeter::exporting
