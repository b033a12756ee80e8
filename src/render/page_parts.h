// SPDX-License-Identifier: Apache-2.0
// The members of a page's payload, each written into an object that is open.
#pragma once

#include "base/json_writer.h"
#include "model/report.h"
#include "model/run.h"
#include "render/page_payload.h"

namespace epochmeter::render {

// Times of a page: whole ms after the begin of the recording.
class PageClock {
 public:
  explicit PageClock(const model::Run& run) : begin_ns_(run.Recorded().begin_ns) {}
  int64_t Ms(int64_t t_ns) const { return (t_ns - begin_ns_) / base::kNsPerMs; }

 private:
  int64_t begin_ns_;
};

// "curves". False when points were left out.
bool WriteCurves(const model::Run& run, const model::Report& report, int64_t most_buckets,
                 base::JsonWriter* json);

// "ranks" and "slowest". False when steps were left out.
bool WriteRanks(const model::Run& run, const model::Report& report, size_t step_buckets,
                base::JsonWriter* json);

// "events", "log" and "log_omitted".
void WriteHappenings(const model::Run& run, const model::Report& report, const PageLimits& limits,
                     base::JsonWriter* json);

}  // namespace epochmeter::render
