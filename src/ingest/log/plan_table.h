// SPDX-License-Identifier: Apache-2.0
// The plans of all kinds of lines seen, by the hash of their skeleton. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "ingest/log/line_plan.h"

namespace epochmeter::ingest::log {

// Plans of lines that may be records stay where they are as long as the table; the others may be
// forgotten when there are too many kinds of lines.
class PlanTable {
 public:
  PlanTable();

  // Null when no plan has this hash. The pointer is good until the next Add.
  const LinePlan* Find(uint64_t hash) const {
    for (size_t at = hash & mask_;; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.plan == nullptr) return nullptr;
      if (slot.hash == hash) return slot.plan;
    }
  }
  const LinePlan* Add(uint64_t hash, LinePlan plan);

 private:
  static constexpr size_t kMostPlans = 128 * 1024;
  static constexpr size_t kMostKept = 16 * 1024;
  struct Slot {
    uint64_t hash = 0;
    const LinePlan* plan = nullptr;
  };
  void Insert(uint64_t hash, const LinePlan* plan);
  void Grow();
  void Forget();

  std::vector<Slot> slots_;
  size_t mask_;
  size_t count_ = 0;
  std::deque<LinePlan> kept_;
  std::vector<uint64_t> kept_hashes_;
  std::deque<LinePlan> others_;
  LinePlan none_;  // of kinds that find no room
};

}  // namespace epochmeter::ingest::log
