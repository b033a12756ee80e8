// SPDX-License-Identifier: Apache-2.0
// Places the stamps of one file in time: adds the year, the day and the zone that were not printed,
// and says what it assumed. One thread; fixed memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/log/date_order.h"
#include "ingest/log/line_prefix.h"
#include "ingest/wall_time.h"

namespace epochmeter::ingest::log {

struct ClockFacts {
  std::optional<int64_t> modified_ns;    // UTC, of the file; no stamp lies later
  std::optional<int64_t> zone_offset_s;  // of lines that name no zone; absent: the process's zone
  int64_t now_ns = 0;                    // UTC; stands for modified_ns where that is absent
};

class StampClock {
 public:
  explicit StampClock(const ClockFacts& facts);

  // Looks ahead for full dates, the order of days and months, midnights and the zone. At most once,
  // before the first WallNs. `head` begins the file, `tail` ends it; an empty tail says that the
  // head is the whole file. Without this the first stamps are read by what they say alone.
  void SurveySample(std::string_view head, std::string_view tail);

  // UTC. Nothing for a stamp that can't be (the 30th of February).
  std::optional<int64_t> WallNs(const RawStamp& stamp);

  // What was assumed, a sentence each; only of what stamps needed.
  std::vector<std::string> Notes() const;

 private:
  struct Survey;

  std::optional<CivilDate> DateOf(const RawStamp& stamp);
  std::optional<int64_t> LocalOf(const RawStamp& stamp);
  int64_t PlaceTimeOfDay(int64_t of_day_ns);
  std::optional<int32_t> PlaceYear(const CivilDate& date);
  int64_t ToUtc(int64_t local_ns, const RawStamp& stamp);
  int64_t ToLocal(int64_t utc_ns) const;
  int64_t LastLocal() const;
  void SeeSamples(std::string_view bytes, Survey& survey) const;
  void SeeSample(const RawStamp& stamp, Survey& survey) const;
  static void SeeNumberDate(const NumberDate& date, Survey& survey);
  static void VoteOffset(std::optional<int64_t> utc_ns, std::optional<int64_t> local_ns,
                         Survey& survey);
  void ChooseOrder(const Survey& survey);
  void ChooseZone(const Survey& survey);
  void See(int64_t utc_ns);
  void AddOrderNote(std::vector<std::string>& notes) const;
  void AddZoneNote(std::vector<std::string>& notes) const;

  ClockFacts facts_;
  LocalClock zone_;
  std::optional<int64_t> inferred_offset_s_;
  std::optional<int64_t> anchor_ns_;  // local, of a stamp with a full date that the survey saw
  std::optional<int64_t> last_utc_ns_;
  std::string last_date_;  // as printed: most stamps are of the day of the one before
  int64_t last_day_ns_ = 0;

  DateOrder order_ = DateOrder::kMonthFirst;
  enum class OrderBy : uint8_t { kUsage, kNumber, kSpan, kFileTime } order_by_ = OrderBy::kUsage;
  bool order_known_ = false;

  // What the notes tell.
  std::optional<int32_t> assumed_year_;
  bool year_from_dates_ = false, order_used_ = false, zone_used_ = false;
  std::optional<int64_t> assumed_day_;
  uint64_t midnights_ = 0, reordered_ = 0, back_ = 0;
  int64_t most_back_ns_ = 0;
  int64_t survey_midnights_ = 0;
  std::optional<int64_t> survey_last_of_day_ns_;
};

}  // namespace epochmeter::ingest::log
