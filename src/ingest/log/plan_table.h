// SPDX-License-Identifier: Apache-2.0
// The plans of all kinds of lines seen, by the hash of their skeleton. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>
#include <vector>

#include "ingest/log/line_plan.h"
#include "ingest/log/stamp_place.h"
#include "ingest/log/templates.h"

namespace epochmeter::ingest::log {

// Lines of one skeleton.
struct LineKind {
  uint64_t hash = 0;
  const LinePlan* plan = nullptr;
  StampPlace stamp;
  uint32_t message = TemplateTable::kNotClustered;  // its template, once it has one
};

// Plans of lines that may be records stay where they are as long as the table. Of the others only
// what the engine asks for is kept, once for all kinds that are alike in it; which kinds these are
// may be forgotten when there are too many kinds of lines.
class PlanTable {
 public:
  PlanTable();

  // Null when no kind has this hash. The pointer is good until the next Add.
  LineKind* Find(uint64_t hash) {
    for (size_t at = hash & mask_;; at = (at + 1) & mask_) {
      LineKind& kind = kinds_[at];
      if (kind.plan == nullptr) return nullptr;
      if (kind.hash == hash) return &kind;
    }
  }
  LineKind* Add(uint64_t hash, LinePlan plan);
  // Adds what MakePlan says of the first line of a kind. In a log of free text without end only of
  // lines with a word that records have; of the others no more is asked than whether they may be
  // events.
  LineKind* Learn(uint64_t hash, std::string_view text, const Skeleton& skeleton);

 private:
  static constexpr size_t kMostPlans = 128 * 1024;
  static constexpr size_t kMostKept = 16 * 1024;
  static constexpr uint64_t kFlood = 64 * 1024;  // kinds that are no records
  LineKind* Insert(const LineKind& kind);
  const LinePlan* Alike(const LinePlan& plan);
  void Grow();
  void Forget();

  std::vector<LineKind> kinds_;
  size_t mask_;
  size_t count_ = 0;
  uint64_t others_ = 0;  // kinds that are no records, also those forgotten
  std::deque<LinePlan> kept_;
  std::vector<uint64_t> kept_hashes_;
  // Of lines that are no records, by their flags.
  std::array<std::unique_ptr<LinePlan>, 128> alike_;
};

}  // namespace epochmeter::ingest::log
