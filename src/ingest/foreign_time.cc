// SPDX-License-Identifier: Apache-2.0
#include "ingest/foreign_time.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/clock.h"
#include "model/limits.h"

namespace epochmeter::ingest {
namespace {

constexpr size_t kMostDistances = 4096;
constexpr int64_t kDayNs = 86400 * base::kNsPerSecond;
// A file's clock may fall a little between the rows of one sample.
constexpr int64_t kJitterNs = 10 * base::kNsPerSecond;
constexpr int64_t kYearNs = 366 * kDayNs;

using model::kMostNs;  // of a file, so that no sum overflows

// The value that `part` of the sorted list lies below; 0 of an empty list.
int64_t Quantile(const std::vector<int64_t>& sorted, double part) {
  if (sorted.empty()) return 0;
  const auto at = static_cast<size_t>(part * static_cast<double>(sorted.size() - 1) + 0.5);
  return sorted[at];
}

// count * step, at most kMostNs.
int64_t Times(uint64_t count, int64_t step_ns) {
  int64_t product = 0;
  const bool over = __builtin_mul_overflow(count, step_ns, &product);
  return over ? kMostNs : std::min(product, kMostNs);
}

int64_t Median(std::vector<int64_t> list) {
  std::sort(list.begin(), list.end());
  return Quantile(list, 0.5);
}

// A clock without a date passed midnight when it falls by more than half a day.
bool PassedMidnight(int64_t last_ns, int64_t now_ns) { return last_ns - now_ns > kDayNs / 2; }

}  // namespace

void TimeSurvey::See(const RowTime& time, bool new_tick) {
  const bool first = rows_++ == 0;
  const bool known = time.wall_ns || time.of_day_ns;
  const bool tick = first || new_tick;
  if (tick) ++ticks_;
  if (!known) return;
  const bool first_time = !walls_ && !of_day_;
  (time.wall_ns ? walls_ : of_day_) = true;
  int64_t now_ns = time.wall_ns ? *time.wall_ns : *time.of_day_ns + days_ * kDayNs;
  if (!time.wall_ns && !first_time && PassedMidnight(last_ns_, now_ns)) {
    ++days_;
    now_ns += kDayNs;
  }
  if (first_time) first_ns_ = least_ns_ = last_tick_ns_ = now_ns;
  least_ns_ = std::min(least_ns_, now_ns);
  if (!first_time && now_ns >= last_ns_ && row_distances_.size() < kMostDistances) {
    row_distances_.push_back(now_ns - last_ns_);
  }
  if (!first_time && tick) {
    const int64_t distance_ns = now_ns - last_tick_ns_;
    // A row a year behind the last one has a time that can't be; TimePlacer leaves it out.
    const bool possible = 0 < distance_ns && distance_ns <= kYearNs;
    if (possible && tick_distances_.size() < kMostDistances) {
      tick_distances_.push_back(distance_ns);
    }
    last_tick_ns_ = now_ns;
  }
  last_ns_ = now_ns;
}

// Rows of one sample are near to each other, samples are far apart: the gap that tells them apart
// lies between the shortest and the longest usual distance.
void TimeSurvey::FindGap(std::vector<int64_t> distances) {
  std::sort(distances.begin(), distances.end());
  const int64_t near_ns = std::max(Quantile(distances, 0.1), base::kNsPerMs);
  const int64_t far_ns = Quantile(distances, 0.95);
  const bool apart = far_ns / 4 > near_ns;
  tick_gap_ns_ = apart ? static_cast<int64_t>(std::sqrt(static_cast<double>(near_ns)) *
                                              std::sqrt(static_cast<double>(far_ns)))
                       : 0;
}

// The usual number of rows between two gaps.
void TimeSurvey::FindRowsATick() {
  if (tick_gap_ns_ == 0) return;
  std::map<size_t, size_t> counts;
  size_t rows = 1;
  for (const int64_t distance : row_distances_) {
    if (distance <= tick_gap_ns_) {
      ++rows;
      continue;
    }
    ++counts[rows];
    rows = 1;
  }
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != counts.end()) rows_a_tick_ = most->first;
}

void TimeSurvey::Settle(const ImportOptions& options, int64_t modified_wall_ns,
                        double default_interval_s) {
  FindGap(row_distances_);
  FindRowsATick();
  if (options.gpus > 0) rows_a_tick_ = static_cast<size_t>(options.gpus);
  // Of rows without a device every row counts as a tick; the distances beyond the gap are theirs.
  std::vector<int64_t> ticks = tick_distances_;
  if (rows_a_tick_ > 1 && tick_gap_ns_ > 0) {
    std::erase_if(ticks, [this](int64_t distance) { return distance <= tick_gap_ns_; });
  }
  period_ns_ = Median(std::move(ticks));
  const double interval_s = options.interval_s.value_or(default_interval_s);
  const auto interval_ns = static_cast<int64_t>(interval_s * 1e9);
  if (walls_) {
    begin_wall_ns_ = ordered_ ? first_ns_ : least_ns_;
  } else if (of_day_) {
    const int64_t local_ns = LocalClock::ToLocal(options.start_wall_ns.value_or(modified_wall_ns));
    first_day_ns_ = local_ns / kDayNs * kDayNs;
    if (!options.start_wall_ns) {
      first_day_ns_ -= days_ * kDayNs;
      // Written before midnight, closed after it.
      if (first_day_ns_ + last_ns_ > local_ns + kDayNs / 24) first_day_ns_ -= kDayNs;
    }
    begin_wall_ns_ = LocalClock().ToUtc(first_day_ns_ + first_ns_);
  } else {
    period_ns_ = interval_ns;
    const int64_t span_ns = Times(ticks_ > 0 ? ticks_ - 1 : 0, interval_ns);
    begin_wall_ns_ = options.start_wall_ns.value_or(modified_wall_ns - span_ns);
  }
}

int64_t TimePlacer::FromDay(int64_t of_day_ns) {
  if (rows_ > 1 && PassedMidnight(last_of_day_ns_, of_day_ns)) ++days_;
  last_of_day_ns_ = of_day_ns;
  return zone_.ToUtc(survey_.first_day_ns() + days_ * kDayNs + of_day_ns);
}

std::optional<int64_t> TimePlacer::Place(const RowTime& time, bool new_tick) {
  moved_ns_ = 0;
  after_gap_ = false;
  if (!survey_.has_times()) {
    if (rows_++ > 0 && new_tick) ++ticks_;
    after_gap_ = new_tick;
    return last_ns_ = Times(ticks_, survey_.period_ns());
  }
  if (!time.wall_ns && !time.of_day_ns) return std::nullopt;
  const bool first = rows_++ == 0;
  const int64_t wall_ns = time.wall_ns ? *time.wall_ns : FromDay(*time.of_day_ns);
  int64_t t_ns = wall_ns - survey_.begin_wall_ns() + shift_ns_;
  if (first && survey_.ordered()) return last_ns_ = t_ns;
  if (!survey_.ordered()) {
    if (t_ns > kMostNs) return std::nullopt;
    last_ns_ = std::max(last_ns_, t_ns);
    return t_ns;
  }
  if (t_ns > std::min(last_ns_ + kYearNs, kMostNs)) return std::nullopt;
  if (t_ns < last_ns_ - kJitterNs) {
    // Set back, or another recording appended: goes on one period later.
    moved_ns_ = last_ns_ - t_ns + survey_.period_ns();
    if (shift_ns_ > kMostNs || last_ns_ > kMostNs - survey_.period_ns()) return std::nullopt;
    shift_ns_ += moved_ns_;
    t_ns += moved_ns_;
  }
  after_gap_ = t_ns - last_ns_ > survey_.tick_gap_ns();
  return last_ns_ = std::max(last_ns_, t_ns);
}

}  // namespace epochmeter::ingest
