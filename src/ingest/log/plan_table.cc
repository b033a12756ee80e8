// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/plan_table.h"

#include <algorithm>
#include <array>
#include <utility>

#include "ingest/log/events.h"

namespace epochmeter::ingest::log {
namespace {
constexpr size_t kFirstKinds = 4096;

// Whether a line has a word that a record would have.
bool MayBeRecord(std::string_view text) {
  constexpr size_t kMostBytes = 1024;
  constexpr auto kWords = std::to_array<std::string_view>(
      {"epoch", "step", "iter", "loss", "batch", "it/s", "s/it", "update", "round", "episode",
       "eval", "val", "train", "acc", "lr", "轮", "损失", "步"});
  std::array<char, kMostBytes> lower;  // NOLINT: filled as far as it is read
  const size_t size = std::min(text.size(), kMostBytes);
  std::transform(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(size), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
  const std::string_view all(lower.data(), size);
  return std::any_of(kWords.begin(), kWords.end(), [all](std::string_view word) {
    return all.find(word) != std::string_view::npos;
  });
}
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
    ++others_;
  }
  return Insert({.hash = hash, .plan = added, .stamp = {}});
}

LineKind* PlanTable::Learn(uint64_t hash, std::string_view text, const Skeleton& skeleton) {
  const bool flood = others_ >= kFlood && others_ / 8 > kept_.size();
  const bool full = kept_.size() == kMostKept;
  if (full || (flood && !MayBeRecord(text))) {
    LinePlan remark;
    remark.events = EventReader::MayMatter(text);
    return Add(hash, std::move(remark));
  }
  return Add(hash, MakePlan(text, ReadLinePrefix(text), skeleton));
}

// A plan that says the same of a line that is no record. A kind that finds no room is none.
const LinePlan* PlanTable::Alike(const LinePlan& plan) {
  const bool flags[] = {plan.events,  plan.begins_eval, plan.begins_train, plan.repeats_best,
                        plan.columns, plan.rows,        plan.titles_train};
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
    alike->titles_train = plan.titles_train;
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
