// SPDX-License-Identifier: Apache-2.0
// Where the rows of another tool's file stand in time. A file is read twice: the first reading
// finds out what its rows say about time, the second one places them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ingest/importers.h"
#include "ingest/wall_time.h"

namespace epochmeter::ingest {

// What one row says. At most one of both.
struct RowTime {
  std::optional<int64_t> wall_ns;    // UTC
  std::optional<int64_t> of_day_ns;  // local time without a date
};

// Sees the rows of the first reading in order. One thread.
class TimeSurvey {
 public:
  // `new_tick`: the row is known to begin another sample of all devices.
  void See(const RowTime& time, bool new_tick);
  // The file's records are in no order of time: they are placed where their times say.
  void SetUnordered() { ordered_ = false; }
  bool ordered() const { return ordered_; }
  // Rows that name no device need to know how many belong together; 0 is "find out".
  void Settle(const ImportOptions& options, int64_t modified_wall_ns, double default_interval_s);

  uint64_t rows() const { return rows_; }
  // Rows have no time of their own, or no date: the places in time are assumed.
  bool assumed() const { return !walls_ || of_day_; }
  bool has_times() const { return walls_ || of_day_; }
  int64_t begin_wall_ns() const { return begin_wall_ns_; }
  int64_t period_ns() const { return period_ns_; }
  // Rows of one sample lie no farther apart; meant for rows that name no device.
  int64_t tick_gap_ns() const { return tick_gap_ns_; }
  size_t rows_a_tick() const { return rows_a_tick_; }
  // Local midnight of the first row's day, as if in UTC, where rows have no date.
  int64_t first_day_ns() const { return first_day_ns_; }

 private:
  void FindGap(std::vector<int64_t> distances);
  void FindRowsATick();

  uint64_t rows_ = 0, ticks_ = 0;
  bool ordered_ = true, walls_ = false, of_day_ = false;
  int64_t first_ns_ = 0, least_ns_ = 0, last_ns_ = 0, last_tick_ns_ = 0;
  int64_t days_ = 0;                    // midnights passed
  std::vector<int64_t> row_distances_;  // of the first rows
  std::vector<int64_t> tick_distances_;
  int64_t begin_wall_ns_ = 0, period_ns_ = 0, tick_gap_ns_ = 0, first_day_ns_ = 0;
  size_t rows_a_tick_ = 1;
};

// Gives times to the rows of the second reading. Times count from the first row; they do not fall.
class TimePlacer {
 public:
  explicit TimePlacer(const TimeSurvey& survey) : survey_(survey) {}

  // Nothing for a row without a time in a file whose rows have one, and for times that can't be:
  // more than a year after the row before.
  std::optional<int64_t> Place(const RowTime& time, bool new_tick);
  // Of the row placed last: how far it had to be moved because the file's clock went back.
  int64_t moved_ns() const { return moved_ns_; }
  // Whether the row placed last lies farther from the one before than rows of one sample do.
  bool after_gap() const { return after_gap_; }
  int64_t last_ns() const { return last_ns_; }

 private:
  int64_t FromDay(int64_t of_day_ns);

  const TimeSurvey& survey_;
  uint64_t rows_ = 0, ticks_ = 0;
  int64_t days_ = 0, last_of_day_ns_ = 0;
  int64_t shift_ns_ = 0;  // added since the clock was set back
  int64_t last_ns_ = 0, moved_ns_ = 0;
  bool after_gap_ = false;
  LocalClock zone_;
};

}  // namespace epochmeter::ingest
