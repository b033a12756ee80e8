// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/plan_table.h"

#include <utility>

namespace epochmeter::ingest::log {
namespace {
constexpr size_t kFirstSlots = 4096;
}  // namespace

PlanTable::PlanTable() : slots_(kFirstSlots), mask_(kFirstSlots - 1) {}

const LinePlan* PlanTable::Add(uint64_t hash, LinePlan plan) {
  if (count_ >= kMostPlans) Forget();
  const bool record = plan.tier != Tier::kNone;
  const LinePlan* added = &none_;
  if (record && kept_.size() < kMostKept) {
    added = &kept_.emplace_back(std::move(plan));
    kept_hashes_.push_back(hash);
  } else if (!record) {
    plan.fields = {};
    added = &others_.emplace_back(std::move(plan));
  }
  Insert(hash, added);
  return added;
}

void PlanTable::Insert(uint64_t hash, const LinePlan* plan) {
  if (++count_ * 2 > slots_.size()) Grow();
  size_t at = hash & mask_;
  while (slots_[at].plan != nullptr) at = (at + 1) & mask_;
  slots_[at] = {.hash = hash, .plan = plan};
}

void PlanTable::Grow() {
  std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots_.size() * 2));
  mask_ = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.plan == nullptr) continue;
    size_t at = slot.hash & mask_;
    while (slots_[at].plan != nullptr) at = (at + 1) & mask_;
    slots_[at] = slot;
  }
}

// A log of free text has no end of kinds: those that are no records are learned again.
void PlanTable::Forget() {
  others_.clear();
  slots_.assign(slots_.size(), {});
  count_ = 0;
  for (size_t i = 0; i < kept_.size(); ++i) Insert(kept_hashes_[i], &kept_[i]);
}

}  // namespace epochmeter::ingest::log
