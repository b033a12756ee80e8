// SPDX-License-Identifier: Apache-2.0
#include "cli/disk_watch.h"

#include "base/clock.h"
#include "cli/say.h"
#include "model/source_event.h"

namespace epochmeter::cli {
namespace {

// For how long a disk must take everything before it counts as well again.
constexpr int64_t kWellNs = 5 * base::kNsPerSecond;
// A disk that fails again and again is told of once in this time.
constexpr int64_t kTellNs = 60 * base::kNsPerSecond;

}  // namespace

std::optional<model::Event> DiskWatch::Note(const base::Result<>& flushed, int64_t flush_ns,
                                            int64_t now_ns) {
  if (!flushed.ok()) {
    NoteFailed(flushed.error(), flush_ns, now_ns);
    return {};
  }
  if (since_ns_ == 0) return {};
  if (well_ns_ == 0) well_ns_ = now_ns;
  if (now_ns - last_ns_ < kWellNs) return {};
  if (told_) SayAtOnce("epochmeter: the disk takes records again");
  model::Event event = AsEvent(now_ns);
  since_ns_ = 0;
  attempts_ = 0;
  return event;
}

void DiskWatch::NoteFailed(const base::Error& error, int64_t flush_ns, int64_t now_ns) {
  if (since_ns_ == 0) {
    since_ns_ = now_ns - flush_ns;
    reason_ = error.why.empty() ? error.what : error.why;
    told_ = told_ns_ == 0 || now_ns - told_ns_ > kTellNs;
    if (told_) {
      told_ns_ = now_ns;
      SayAtOnce("epochmeter: " + error.Message() + "; recording goes on in memory");
    }
  }
  last_ns_ = now_ns;
  well_ns_ = 0;
  ++attempts_;
}

std::optional<model::Event> DiskWatch::Last(int64_t now_ns) const {
  if (since_ns_ == 0) return {};
  return AsEvent(now_ns);
}

model::Event DiskWatch::AsEvent(int64_t now_ns) const {
  const double lasted_s = base::SecondsFromNs((well_ns_ == 0 ? now_ns : well_ns_) - since_ns_);
  return model::SourceEvent(
      since_ns_, "recorder.disk",
      {{.key = "state", .value = std::string("failed")},
       {.key = "duration_s", .value = lasted_s},
       {.key = "attempts", .value = attempts_},
       {.key = "detail",
        .value = "the disk did not take records for " + base::FormatDuration(lasted_s) + " (" +
                 reason_ + "); they waited in memory"}});
}

}  // namespace epochmeter::cli
