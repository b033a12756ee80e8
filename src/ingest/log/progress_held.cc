// SPDX-License-Identifier: Apache-2.0
// Records of which it is not sure yet that they are any.
#include <algorithm>
#include <utility>

#include "ingest/log/progress_impl.h"

namespace epochmeter::ingest::log {
namespace {

// Records of one shape that make it progress although no loss is printed.
constexpr size_t kSureCount = 3;

}  // namespace

// The first records with a loss: what was held before is of the same kind, or none.
void Progress::Impl::Promote(const HeldRecord& record) {
  if (best_ == Tier::kLoss) return;
  best_ = Tier::kLoss;
  best_family_ = record.plan->family;
  for (HeldRecord& held : held_) {
    if (held.plan->family == best_family_ && (held.tier >= Tier::kCounter || held.header_epoch))
      Give(StreamOf(held.place.stream), &held);
  }
  held_.clear();
}

void Progress::Impl::Hold(HeldRecord* record, Tier as) {
  if (held_.size() >= kMostHeld) return;
  held_.push_back(*record);
  held_.back().tier = as;
}

Tier Progress::Impl::HeldTier() const {
  Tier tier = Tier::kNone;
  for (const HeldRecord& held : held_) {
    if (Sure(held)) tier = std::max(tier, held.tier);
  }
  return tier;
}

// Whether a held record's shape behaves like progress.
bool Progress::Impl::Sure(const HeldRecord& held) const {
  const auto found = shapes_.find(held.plan->shape);
  const uint64_t count = found == shapes_.end() ? 0 : found->second.count;
  const uint64_t rising = found == shapes_.end() ? 0 : found->second.rising;
  switch (held.tier) {
    case Tier::kFigures:
      return count >= 2;
    case Tier::kCounter:
      return count >= kSureCount && rising * 5 >= count * 3;
    default:
      return false;
  }
}

void Progress::Impl::GiveHeld(Tier tier) {
  if (tier == Tier::kNone) {
    held_.clear();
    return;
  }
  best_ = tier;
  std::vector<HeldRecord> held = std::move(held_);
  held_.clear();
  for (HeldRecord& record : held) {
    if (record.tier != tier) continue;
    best_family_ = record.plan->family;
    Give(StreamOf(record.place.stream), &record);
  }
}

// At the end of a file without any record: what was held may be what there is.
void Progress::Impl::Decide() {
  const Tier tier = HeldTier();
  if (tier >= Tier::kFigures) return GiveHeld(tier);
  std::vector<HeldRecord> held = std::move(held_);
  held_.clear();
  // Epochs' summaries, when nothing finer was printed; then losses without any counter; then
  // counters alone.
  for (const Tier as : {Tier::kHeader, Tier::kExtra, Tier::kCounter}) {
    std::unordered_map<uint32_t, size_t> counts;
    for (const HeldRecord& record : held) counts[record.plan->shape] += record.tier == as;
    for (HeldRecord& record : held) {
      if (record.tier != as) continue;
      const bool enough = as == Tier::kCounter                 ? Sure(record)
                          : record.plan->tier == Tier::kHeader ? true
                                                               : counts[record.plan->shape] >= 2;
      if (!enough) continue;
      record.kind = RecordKind::kTrain;
      Give(StreamOf(record.place.stream), &record);
    }
    if (records_ > 0) return;
  }
}

}  // namespace epochmeter::ingest::log
