// SPDX-License-Identifier: Apache-2.0
// What a bill has to say beside its sums: what was decided, what is missing, what to do about it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "diagnose/facts.h"
#include "model/bill.h"

namespace epochmeter::diagnose {

// Counted while the bill was made.
struct BillFacts {
  int64_t restarts = 0;
  size_t shared = 0;                          // devices that several ranks are on
  size_t uncertain = 0;                       // devices of which it is not known who uses them
  size_t untold_ranks = 0;                    // ranks that told no steps, epochs and phases
  size_t unknown_throttling = 0;              // devices held down by nobody knows how much
  std::vector<std::string> activity_sources;  // of each GPU
};

// Sets activity_source, mixed_activity and energy_disagreement_ratio.
void SetSources(const BillFacts& told, model::Bill* bill);

std::vector<model::Message> BillNotes(const Facts& facts, const BillFacts& told,
                                      const model::Bill& bill);

}  // namespace epochmeter::diagnose
