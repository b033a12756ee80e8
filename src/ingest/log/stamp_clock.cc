// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/stamp_clock.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <map>

#include "base/clock.h"

namespace epochmeter::ingest::log {
namespace {

constexpr int64_t kSecondNs = base::kNsPerSecond;
constexpr int64_t kMinuteNs = 60 * kSecondNs;
constexpr int64_t kDayNs = 86400 * kSecondNs;
// A time of day that lies farther back than this is of the next day: lines of several writers and
// the hour that comes twice in autumn stay in their day.
constexpr int64_t kMostBackNs = 90 * kMinuteNs;
constexpr size_t kMostSampleBytes = 1024 * 1024;
constexpr size_t kMostSampleLineBytes = 256;
constexpr int64_t kLeastVotes = 3;

// Rounds down, also before 1970.
int64_t FloorDay(int64_t ns) { return ns / kDayNs - (ns % kDayNs < 0 ? 1 : 0); }

std::string DayText(int64_t day) {
  const std::chrono::year_month_day date(std::chrono::sys_days{std::chrono::days(day)});
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

std::string OffsetText(int64_t offset_s) {
  const int64_t minutes = std::abs(offset_s) / 60;
  return fmt::format("UTC{}{:02}:{:02}", offset_s < 0 ? '-' : '+', minutes / 60, minutes % 60);
}

std::string SpanText(int64_t ns) {
  const int64_t seconds = ns / kSecondNs;
  if (seconds < 120) return fmt::format("{:.1f} s", static_cast<double>(ns) / kSecondNs);
  if (seconds < 7200) return fmt::format("{} min", seconds / 60);
  return fmt::format("{:.1f} h", static_cast<double>(seconds) / 3600);
}

}  // namespace

// What a look at the begin and the end of a file found.
struct StampClock::Survey {
  bool possible[3] = {true, true, true};  // per order: no stamp contradicts it
  uint64_t pairs = 0;
  std::optional<NumberDate> last_pair;
  std::array<int64_t, 3> span_days{};  // the sum of the distances between following dates
  std::optional<int64_t> last_of_day_ns;
  int64_t midnights = 0;
  std::optional<int64_t> dated_local_ns;  // the first with a year, its zone not looked at
  // A zoned stamp beside one without a zone: how often each distance, in quarters of an hour.
  std::optional<int64_t> before_utc_ns, before_local_ns;
  std::map<int64_t, int64_t> offsets;
};

StampClock::StampClock(const ClockFacts& facts) : facts_(facts) {}

int64_t StampClock::ToLocal(int64_t utc_ns) const {
  if (facts_.zone_offset_s) return utc_ns + *facts_.zone_offset_s * kSecondNs;
  if (inferred_offset_s_) return utc_ns + *inferred_offset_s_ * kSecondNs;
  return LocalClock::ToLocal(utc_ns);
}

int64_t StampClock::ToUtc(int64_t local_ns, const RawStamp& stamp) {
  if (stamp.offset_s) return local_ns - *stamp.offset_s * kSecondNs;
  zone_used_ = true;
  if (facts_.zone_offset_s) return local_ns - *facts_.zone_offset_s * kSecondNs;
  if (inferred_offset_s_) return local_ns - *inferred_offset_s_ * kSecondNs;
  return zone_.ToUtc(local_ns);
}

// The latest moment that the file can speak of, in local time.
int64_t StampClock::LastLocal() const {
  return ToLocal(facts_.modified_ns.value_or(facts_.now_ns));
}

void StampClock::See(int64_t utc_ns) {
  if (last_utc_ns_ && utc_ns < *last_utc_ns_ - kSecondNs) {
    ++back_;
    most_back_ns_ = std::max(most_back_ns_, *last_utc_ns_ - utc_ns);
  }
  last_utc_ns_ = utc_ns;
}

std::optional<CivilDate> StampClock::DateOf(const RawStamp& stamp) {
  const auto numbers = ReadNumberDate(stamp.text);
  if (!numbers) {
    if (!stamp.month || !stamp.day) return std::nullopt;
    return CivilDate{.year = stamp.year, .month = *stamp.month, .day = *stamp.day};
  }
  auto date = numbers->As(order_);
  if (!date) {
    for (const DateOrder other : kDateOrders) {
      date = numbers->As(other);
      if (!date) continue;
      reordered_ += order_used_ && !order_known_ ? 1 : 0;
      if (!order_known_) order_ = other;
      order_by_ = OrderBy::kNumber;
      break;
    }
  }
  order_used_ = true;
  return date;
}

std::optional<int32_t> StampClock::PlaceYear(const CivilDate& date) {
  const bool by_dates = last_utc_ns_ || anchor_ns_;
  std::optional<int32_t> year;
  if (by_dates) {
    year = NearestYear(date, last_utc_ns_ ? ToLocal(*last_utc_ns_) : *anchor_ns_);
  } else {
    // The last one that is not after the file's last change; a day is for other zones.
    const int64_t last = LastLocal() + kDayNs;
    year = NearestYear(date, last);
    const auto day = year ? DayOf(*year, date.month, date.day) : std::nullopt;
    if (day && *day * kDayNs > last) year = NearestYear(date, last - 365 * kDayNs);
  }
  if (!assumed_year_) {
    assumed_year_ = year;
    year_from_dates_ = by_dates;
  }
  return year;
}

int64_t StampClock::PlaceTimeOfDay(int64_t of_day_ns) {
  const auto near = [&](int64_t local_ns) {
    int64_t placed = FloorDay(local_ns) * kDayNs + of_day_ns;
    if (placed < local_ns - kMostBackNs) placed += kDayNs;
    if (placed - kDayNs >= local_ns - kMostBackNs) placed -= kDayNs;
    return placed;
  };
  if (last_utc_ns_) {
    const int64_t last = ToLocal(*last_utc_ns_);
    const int64_t placed = near(last);
    if (FloorDay(placed) > FloorDay(last)) ++midnights_;
    return placed;
  }
  if (anchor_ns_) return near(*anchor_ns_);
  const int64_t last = LastLocal();
  const int64_t last_of_day_ns = survey_last_of_day_ns_.value_or(of_day_ns);
  int64_t day = FloorDay(last);
  if (day * kDayNs + last_of_day_ns > last + kMinuteNs) --day;
  assumed_day_ = day - survey_midnights_;
  return *assumed_day_ * kDayNs + of_day_ns;
}

std::optional<int64_t> StampClock::LocalOf(const RawStamp& stamp) {
  if (!stamp.of_day_ns) return std::nullopt;
  if (!stamp.month && !stamp.first) return PlaceTimeOfDay(*stamp.of_day_ns);
  const std::string_view date_text = stamp.text.substr(0, stamp.clock_at);
  if (!date_text.empty() && date_text == last_date_) return last_day_ns_ + *stamp.of_day_ns;
  auto date = DateOf(stamp);
  if (date && !date->year) date->year = PlaceYear(*date);
  if (!date || !date->year) return std::nullopt;
  const auto day_ns = DayNs(*date->year, date->month, date->day);
  if (!day_ns) return std::nullopt;
  last_date_ = date_text;
  last_day_ns_ = *day_ns;
  return *day_ns + *stamp.of_day_ns;
}

std::optional<int64_t> StampClock::WallNs(const RawStamp& stamp) {
  if (stamp.unix_ns) {
    See(*stamp.unix_ns);
    return stamp.unix_ns;
  }
  const auto local_ns = LocalOf(stamp);
  if (!local_ns) return std::nullopt;
  const int64_t utc_ns = ToUtc(*local_ns, stamp);
  See(utc_ns);
  return utc_ns;
}

void StampClock::SurveySample(std::string_view head, std::string_view tail) {
  Survey survey;
  SeeSamples(head.substr(0, kMostSampleBytes), survey);
  if (tail.size() > kMostSampleBytes) tail.remove_prefix(tail.size() - kMostSampleBytes);
  SeeSamples(tail, survey);
  anchor_ns_ = survey.dated_local_ns;
  survey_last_of_day_ns_ = survey.last_of_day_ns;
  survey_midnights_ = survey.midnights;
  ChooseOrder(survey);
  ChooseZone(survey);
}

void StampClock::SeeSamples(std::string_view bytes, Survey& survey) const {
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find_first_of("\r\n"), bytes.size());
    const auto prefix = ReadLinePrefix(bytes.substr(0, std::min(end, kMostSampleLineBytes)));
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    if (prefix.stamp) SeeSample(*prefix.stamp, survey);
  }
}

void StampClock::SeeSample(const RawStamp& stamp, Survey& survey) const {
  const auto numbers = ReadNumberDate(stamp.text);
  if (numbers) SeeNumberDate(*numbers, survey);
  if (stamp.of_day_ns && !stamp.month && !stamp.first) {
    if (survey.last_of_day_ns && *stamp.of_day_ns < *survey.last_of_day_ns - kMostBackNs) {
      ++survey.midnights;
    }
    survey.last_of_day_ns = stamp.of_day_ns;
  }
  std::optional<int64_t> utc_ns = stamp.unix_ns, local_ns;
  if (stamp.year && stamp.month && stamp.of_day_ns && !numbers) {
    const auto day_ns = DayNs(*stamp.year, *stamp.month, *stamp.day);
    if (day_ns) local_ns = *day_ns + *stamp.of_day_ns;
  }
  if (local_ns && stamp.offset_s) {
    utc_ns = *local_ns - *stamp.offset_s * kSecondNs;
    local_ns.reset();
  }
  if (!survey.dated_local_ns) {
    if (local_ns) survey.dated_local_ns = local_ns;
    if (utc_ns) survey.dated_local_ns = ToLocal(*utc_ns);
  }
  VoteOffset(utc_ns, local_ns, survey);
}

// Two lines side by side are written within two minutes: what lies between their stamps is the
// zone.
void StampClock::VoteOffset(std::optional<int64_t> utc_ns, std::optional<int64_t> local_ns,
                            Survey& survey) {
  if (!utc_ns && !local_ns) return;
  const auto utc = utc_ns ? utc_ns : survey.before_utc_ns;
  const auto local = local_ns ? local_ns : survey.before_local_ns;
  survey.before_utc_ns = utc_ns;
  survey.before_local_ns = local_ns;
  if (!utc || !local) return;
  constexpr int64_t kQuarterNs = 15 * kMinuteNs;
  const int64_t ahead = *local - *utc;
  const int64_t quarters = std::llround(static_cast<double>(ahead) / kQuarterNs);
  if (std::abs(ahead - quarters * kQuarterNs) > 2 * kMinuteNs || std::abs(quarters) > 56) return;
  if (survey.offsets.size() < 64 || survey.offsets.contains(quarters)) ++survey.offsets[quarters];
}

void StampClock::SeeNumberDate(const NumberDate& date, Survey& survey) {
  ++survey.pairs;
  for (size_t i = 0; i < kDateOrders.size(); ++i) {
    const auto as = date.As(kDateOrders[i]);
    survey.possible[i] = survey.possible[i] && as.has_value();
    const auto before = survey.last_pair ? survey.last_pair->As(kDateOrders[i]) : std::nullopt;
    if (!as || !before) continue;
    const auto day = DayOf(as->year.value_or(2000), as->month, as->day);
    const auto day_before = DayOf(before->year.value_or(2000), before->month, before->day);
    if (day && day_before) survey.span_days[i] += std::abs(*day - *day_before);
  }
  survey.last_pair = date;
}

void StampClock::ChooseOrder(const Survey& survey) {
  if (survey.pairs == 0) return;
  const int64_t last_day = FloorDay(LastLocal()) + 1;
  const bool dotted = survey.last_pair->mark == '.';
  int possible = 0;
  std::optional<size_t> best;
  int64_t best_age = 0;
  bool by_span = false;
  for (size_t i = 0; i < kDateOrders.size(); ++i) {
    if (!survey.possible[i]) continue;
    ++possible;
    const auto date = survey.last_pair->As(kDateOrders[i]);
    const auto day = date->year ? DayOf(*date->year, date->month, date->day) : std::nullopt;
    // How long before the file's last change; what lies behind it is as good as never.
    const int64_t age = !day ? 0 : (*day > last_day ? 1'000'000 : last_day - *day);
    if (best && survey.span_days[i] != survey.span_days[*best]) {
      by_span = true;
      if (survey.span_days[i] > survey.span_days[*best]) continue;
    } else if (best && (age > best_age || (age == best_age && !(dotted && i == 1)))) {
      continue;
    }
    best = i;
    best_age = age;
  }
  if (!best) return;  // loggers of two orders in one file
  order_ = kDateOrders[*best];
  // Of month and day one can't be first; the year in front is the rare third.
  const bool by_number = possible == 1 || (*best < 2 && !survey.possible[1 - *best]);
  order_known_ = by_number || by_span;
  order_by_ = by_number             ? OrderBy::kNumber
              : by_span             ? OrderBy::kSpan
              : survey.last_pair->c ? OrderBy::kFileTime
                                    : OrderBy::kUsage;
}

void StampClock::ChooseZone(const Survey& survey) {
  if (facts_.zone_offset_s) return;
  int64_t votes = 0, most = 0;
  for (const auto& [quarters, count] : survey.offsets) {
    votes += count;
    if (count <= most) continue;
    most = count;
    inferred_offset_s_ = quarters * 15 * 60;
  }
  if (most < kLeastVotes || most * 10 < votes * 8) inferred_offset_s_.reset();
}

std::vector<std::string> StampClock::Notes() const {
  std::vector<std::string> notes;
  const std::string file_time = facts_.modified_ns ? "the file's last change" : "now";
  if (assumed_year_) {
    notes.push_back(year_from_dates_
                        ? fmt::format("Stamps without a year were put beside the full dates of the "
                                      "same file, from {} on.",
                                      *assumed_year_)
                        : fmt::format("Stamps without a year: the first was put into {}, the last "
                                      "year that is not after {}; a file copied later has another "
                                      "time.",
                                      *assumed_year_, file_time));
  }
  if (assumed_day_) {
    notes.push_back(
        fmt::format("Times without a date: the first was put on {} by {}; midnight was passed {} "
                    "times. Distances are right where no pause was longer than a day.",
                    DayText(*assumed_day_), file_time, midnights_));
  }
  AddOrderNote(notes);
  AddZoneNote(notes);
  if (back_ > 0) {
    notes.push_back(
        fmt::format("{} stamps lie before the one above them, by up to {}: several writers, or a "
                    "clock that was set.",
                    back_, SpanText(most_back_ns_)));
  }
  return notes;
}

void StampClock::AddOrderNote(std::vector<std::string>& notes) const {
  if (!order_used_) return;
  constexpr std::array<const char*, 3> kOrders = {"month/day", "day/month", "year/month/day"};
  constexpr std::array<const char*, 4> kWhys = {
      "as programs mostly write them; no number over 12 tells", "a number over 12 tells",
      "the other order would jump between months", "this puts them nearest to the file's time"};
  notes.push_back(fmt::format("Dates in numbers were read as {}: {}.",
                              kOrders[static_cast<size_t>(order_)],
                              kWhys[static_cast<size_t>(order_by_)]));
  if (reordered_ > 0) {
    notes.push_back("Dates before the first number over 12 were read in another order.");
  }
}

void StampClock::AddZoneNote(std::vector<std::string>& notes) const {
  if (!zone_used_) return;
  if (facts_.zone_offset_s) {
    notes.push_back(fmt::format("Stamps without a zone were read in {}, as asked for.",
                                OffsetText(*facts_.zone_offset_s)));
  } else if (inferred_offset_s_) {
    notes.push_back(
        fmt::format("Stamps without a zone were read in {}: that is how far they are "
                    "from the stamps with a zone beside them.",
                    OffsetText(*inferred_offset_s_)));
  } else {
    notes.push_back(fmt::format("Stamps without a zone were read in this machine's zone, {}.",
                                LocalZoneName()));
  }
}

}  // namespace epochmeter::ingest::log
