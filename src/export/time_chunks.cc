// SPDX-License-Identifier: Apache-2.0
#include "export/time_chunks.h"

#include <algorithm>
#include <limits>

namespace epochmeter::exporting {
namespace {

constexpr int64_t kLastNs = std::numeric_limits<int64_t>::max();
// A file may claim a period of years, a thousand of which no time can hold.
constexpr int64_t kLongestIntervalNs = 86400 * base::kNsPerSecond;

// Without overflow at the end of time.
int64_t EndOf(int64_t begin_ns, int64_t length_ns) {
  return begin_ns > kLastNs - length_ns ? kLastNs : begin_ns + length_ns - 1;
}

}  // namespace

TimeChunks::TimeChunks(const model::Run& run, const std::vector<ExportedSeries>& series,
                       int64_t begin_ns, int64_t length_ns)
    : run_(run), series_(series), length_ns_(length_ns), next_ns_(begin_ns) {}

base::Result<std::optional<TimeChunk>> TimeChunks::Next() {
  while (!done_ && next_ns_ <= run_.span.end_ns && run_.store != nullptr) {
    if (after_empty_) EPM_TRY(SkipHole());
    TimeChunk chunk{.interval = {.begin_ns = next_ns_, .end_ns = EndOf(next_ns_, length_ns_)},
                    .columns = {}};
    bool any = false;
    for (const ExportedSeries& series : series_) {
      EPM_ASSIGN(model::SeriesColumn column, run_.store->Read(series.def->id, chunk.interval));
      any |= !column.t_ns.empty();
      chunk.columns.push_back(std::move(column));
    }
    done_ = chunk.interval.end_ns == kLastNs;
    if (!done_) next_ns_ = chunk.interval.end_ns + 1;
    after_empty_ = !any;
    if (any) return std::optional<TimeChunk>(std::move(chunk));
  }
  return std::optional<TimeChunk>();
}

base::Result<bool> TimeChunks::HasValues(model::Interval interval) const {
  for (const ExportedSeries& series : series_) {
    EPM_ASSIGN(const model::Summary summary, run_.store->Summarize(series.def->id, interval));
    if (summary.count > 0) return true;
  }
  return false;
}

// Strides of doubling length until one has values; it is then read stretch by stretch.
base::Result<> TimeChunks::SkipHole() {
  for (int64_t stride = length_ns_; next_ns_ <= run_.span.end_ns;) {
    const int64_t end_ns = EndOf(next_ns_, stride);
    EPM_ASSIGN(const bool found, HasValues({.begin_ns = next_ns_, .end_ns = end_ns}));
    if (found || end_ns == kLastNs) break;
    next_ns_ = end_ns + 1;
    if (stride < kLastNs / 2) stride *= 2;
  }
  return {};
}

int64_t SamplingIntervalNs(const std::vector<ExportedSeries>& series) {
  int64_t shortest = kLastNs;
  for (const ExportedSeries& one : series) {
    if (one.def->period_ns > 0) shortest = std::min(shortest, one.def->period_ns);
  }
  return shortest == kLastNs ? base::kNsPerSecond : std::min(shortest, kLongestIntervalNs);
}

}  // namespace epochmeter::exporting
