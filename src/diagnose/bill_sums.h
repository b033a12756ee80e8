// SPDX-License-Identifier: Apache-2.0
// Sums of one line of a bill.
#pragma once

#include <cstdint>

#include "model/bill.h"

namespace epochmeter::diagnose {

// A stretch of one device's time of one use. Covered times are doubles: a share of them is no whole
// number, and only `ns` has to add up exactly.
struct Measured {
  model::TimeUse use = model::TimeUse::kUnknown;
  int64_t ns = 0;
  int64_t throttled_ns = 0;  // of productive time
  double counter_j = 0, counter_ns = 0, integral_j = 0, integral_ns = 0;
  bool by_counter = false;  // which of them is the device's energy
  double active_s = 0, activity_ns = 0;
  const model::GpuPrice* price = nullptr;  // null: none is known

  // Part `index` of `count`; all of them add up.
  Measured Share(size_t index, size_t count) const;
};

class LineSums {
 public:
  void Add(const Measured& part);
  bool HasTime() const { return line.total_ns > 0; }
  // The line with what follows from its sums.
  model::BillLine Finish(const model::Rates& rates) const;

  model::BillLine line;

 private:
  void AddUse(model::TimeUse use, int64_t ns, const Measured& part);

  double counter_j_ = 0, counter_ns_ = 0, integral_j_ = 0, integral_ns_ = 0;
  double energy_j_ = 0, energy_ns_ = 0, cost_ = 0, priced_ns_ = 0;
  double active_s_ = 0, activity_ns_ = 0;
};

}  // namespace epochmeter::diagnose
