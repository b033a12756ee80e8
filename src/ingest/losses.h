// SPDX-License-Identifier: Apache-2.0
// Counts what was lost, by reason, and tells the sink seldom: a storm of bad input becomes one
// record a second and reason.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/sink.h"

namespace epochmeter::ingest {

// The fixed facts of a reason; see model::Loss. The texts must outlive the counter.
struct LossReason {
  std::string_view kind;
  model::LossSeverity severity = model::LossSeverity::kDataLoss;
  std::string_view unit;  // what is counted, "datagrams"
  std::string_view help;
};

// Times must not fall much: a fall only delays a record. One thread.
class LossCounter {
 public:
  explicit LossCounter(model::Sink& sink) : sink_(sink) {}

  // `detail` is where or what; the first one since the last record is kept.
  void Add(const LossReason& reason, uint64_t count, int64_t now_ns, std::string_view detail);
  // Nothing is told until Release: records of a run may not stand before its RunInfo.
  void Hold() { held_ = true; }
  void Release() { held_ = false; }
  // Tells what has waited for a second; with `all`, everything.
  void Flush(int64_t now_ns, bool all);

 private:
  struct Entry {
    const LossReason* reason = nullptr;
    uint64_t count = 0;
    bool told = false;  // a record was written at `told_ns`
    int64_t told_ns = 0;
    std::string detail;
  };
  void Tell(Entry& entry, int64_t now_ns);

  model::Sink& sink_;
  bool held_ = false;
  std::vector<Entry> entries_;  // one a reason; a handful
};

}  // namespace epochmeter::ingest
