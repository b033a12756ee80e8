// SPDX-License-Identifier: Apache-2.0
#include "ingest/losses.h"

#include <algorithm>

namespace epochmeter::ingest {

void LossCounter::Add(const LossReason& reason, uint64_t count, int64_t now_ns,
                      std::string_view detail) {
  auto entry = std::find_if(entries_.begin(), entries_.end(),
                            [&reason](const Entry& e) { return e.reason == &reason; });
  if (entry == entries_.end()) {
    entry = entries_.insert(entry, Entry{});
    entry->reason = &reason;
  }
  if (entry->count == 0) entry->detail = detail;
  entry->count += count;
  if (held_) return;
  if (!entry->told || now_ns - entry->told_ns >= base::kNsPerSecond) Tell(*entry, now_ns);
}

void LossCounter::Flush(int64_t now_ns, bool all) {
  for (Entry& entry : entries_) {
    if (entry.count == 0) continue;
    if (all || !entry.told || now_ns - entry.told_ns >= base::kNsPerSecond) Tell(entry, now_ns);
  }
}

void LossCounter::Tell(Entry& entry, int64_t now_ns) {
  std::string detail(entry.reason->unit);
  if (!entry.detail.empty()) detail += ": " + entry.detail;
  sink_.Write(model::Loss{.t_ns = now_ns,
                          .severity = entry.reason->severity,
                          .kind = std::string(entry.reason->kind),
                          .count = entry.count,
                          .detail = std::move(detail),
                          .help = std::string(entry.reason->help)});
  entry.count = 0;
  entry.told = true;
  entry.told_ns = now_ns;
}

}  // namespace epochmeter::ingest
