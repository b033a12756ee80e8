// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/plan_table.h"

#include <utility>

namespace epochmeter::ingest::log {
namespace {
constexpr size_t kFirstKinds = 4096;
}  // namespace

PlanTable::PlanTable() : kinds_(kFirstKinds), mask_(kFirstKinds - 1) {}

LineKind* PlanTable::Add(uint64_t hash, LinePlan plan) {
  if (count_ >= kMostPlans) Forget();
  const LinePlan* added = nullptr;
  if (plan.tier != Tier::kNone && kept_.size() < kMostKept) {
    added = &kept_.emplace_back(std::move(plan));
    kept_hashes_.push_back(hash);
  } else {
    added = Alike(plan);
  }
  return Insert({.hash = hash, .plan = added, .stamp = {}});
}

// A plan that says the same of a line that is no record. A kind that finds no room is none.
const LinePlan* PlanTable::Alike(const LinePlan& plan) {
  const bool flags[] = {plan.events,       plan.begins_eval, plan.begins_train,
                        plan.repeats_best, plan.columns,     plan.rows};
  size_t index = 0;
  for (const bool flag : flags) index = index * 2 + static_cast<size_t>(flag);
  std::unique_ptr<LinePlan>& alike = alike_[index];
  if (alike == nullptr) {
    alike = std::make_unique<LinePlan>();
    alike->events = plan.events;
    alike->begins_eval = plan.begins_eval;
    alike->begins_train = plan.begins_train;
    alike->repeats_best = plan.repeats_best;
    alike->columns = plan.columns;
    alike->rows = plan.rows;
  }
  return alike.get();
}

LineKind* PlanTable::Insert(const LineKind& kind) {
  if (++count_ * 2 > kinds_.size()) Grow();
  size_t at = kind.hash & mask_;
  while (kinds_[at].plan != nullptr) at = (at + 1) & mask_;
  kinds_[at] = kind;
  return &kinds_[at];
}

void PlanTable::Grow() {
  const std::vector<LineKind> old = std::exchange(kinds_, std::vector<LineKind>(kinds_.size() * 2));
  mask_ = kinds_.size() - 1;
  for (const LineKind& kind : old) {
    if (kind.plan == nullptr) continue;
    size_t at = kind.hash & mask_;
    while (kinds_[at].plan != nullptr) at = (at + 1) & mask_;
    kinds_[at] = kind;
  }
}

// A log of free text has no end of kinds: those that are no records are learned again.
void PlanTable::Forget() {
  kinds_.assign(kinds_.size(), {});
  count_ = 0;
  for (size_t i = 0; i < kept_.size(); ++i) {
    Insert({.hash = kept_hashes_[i], .plan = &kept_[i], .stamp = {}});
  }
}

}  // namespace epochmeter::ingest::log
