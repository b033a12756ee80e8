// SPDX-License-Identifier: Apache-2.0
#include "ingest/wall_time.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <ctime>

#include "base/clock.h"
#include "base/strings.h"

namespace epochmeter::ingest {
namespace {

constexpr int64_t kMinuteNs = 60 * base::kNsPerSecond;
constexpr int64_t kHourNs = 60 * kMinuteNs;
constexpr int kLastYear = 2115;  // the last whole one before model::kMostWallNs

// "Z", "+08:00", "+0800" or "-03" as seconds; nothing when it is none of them.
std::optional<int64_t> ZoneSeconds(std::string_view text) {
  if (text == "Z" || text == "z") return 0;
  if (text.size() < 3 || (text[0] != '+' && text[0] != '-')) return std::nullopt;
  const auto hours = Digits(text, 1, 2);
  std::string_view rest = text.substr(3);
  if (!rest.empty() && rest[0] == ':') rest.remove_prefix(1);
  const auto minutes = rest.empty() ? std::optional(0) : Digits(rest, 0, 2);
  if (!hours || !minutes || *hours > 14 || *minutes > 59 || rest.size() > 2) return std::nullopt;
  const int64_t seconds = (*hours * 60LL + *minutes) * 60LL;
  return text[0] == '-' ? -seconds : seconds;
}

std::optional<Stamp> WithTime(std::optional<int64_t> day_ns, std::string_view text, size_t at) {
  size_t end = 0;
  const auto time_ns = TimeOfDayNs(text, at, &end);
  if (!day_ns || !time_ns) return std::nullopt;
  Stamp stamp{.ns = *day_ns + *time_ns, .offset_s = {}};
  const std::string_view zone = base::Trim(text.substr(end));
  if (zone.empty()) return stamp;
  stamp.offset_s = ZoneSeconds(zone);
  return stamp.offset_s ? std::optional(stamp) : std::nullopt;
}

// "Mon Aug 24 10:11:12 2026"
std::optional<Stamp> ParseAsctime(std::string_view text) {
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  const auto words = base::SplitWhitespace(text);
  if (words.size() != 5 || words[1].size() != 3) return std::nullopt;
  const size_t month = kMonths.find(words[1]);
  const auto day = base::ParseInt(words[2]);
  const auto year = base::ParseInt(words[4]);
  if (month == std::string_view::npos || month % 3 != 0 || !day || !year) return std::nullopt;
  if (*day < 1 || *day > 31 || *year < 1970 || *year > kLastYear) return std::nullopt;
  return WithTime(
      DayNs(static_cast<int>(*year), static_cast<int>(month / 3) + 1, static_cast<int>(*day)),
      words[3], 0);
}

// What local time is ahead of UTC at `utc_s`.
int64_t OffsetSeconds(time_t utc_s) {
  tm parts{};
  localtime_r(&utc_s, &parts);
  return parts.tm_gmtoff;
}

}  // namespace

std::optional<int> Digits(std::string_view text, size_t at, size_t count) {
  if (at + count > text.size()) return std::nullopt;
  const auto number = base::ParseUint(text.substr(at, count));
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

std::optional<int64_t> TimeOfDayNs(std::string_view text, size_t at, size_t* end) {
  const auto hour = Digits(text, at, 2);
  const auto minute = Digits(text, at + 3, 2);
  const auto second = Digits(text, at + 6, 2);
  if (!hour || !minute || !second || text[at + 2] != ':' || text[at + 5] != ':') return {};
  if (*hour > 23 || *minute > 59 || *second > 60) return {};
  int64_t ns = ((*hour * 60LL + *minute) * 60LL + *second) * base::kNsPerSecond;
  size_t digit = at + 8;
  if (digit < text.size() && (text[digit] == ',' || text[digit] == '.')) {
    int64_t unit = base::kNsPerSecond / 10;
    for (++digit; digit < text.size() && text[digit] >= '0' && text[digit] <= '9'; ++digit) {
      ns += (text[digit] - '0') * unit;
      unit /= 10;
    }
  }
  if (end != nullptr) *end = digit;
  return ns;
}

std::optional<int64_t> DayNs(int year, int month, int day) {
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok() || year < 1970 || year > kLastYear) return std::nullopt;
  const std::chrono::sys_days days(date);
  return days.time_since_epoch().count() * 86400LL * base::kNsPerSecond;
}

std::optional<Stamp> ParseStamp(std::string_view text) {
  text = base::Trim(text);
  const auto year = Digits(text, 0, 4);
  if (!year) return ParseAsctime(text);
  const bool dense = text.size() > 8 && text[4] >= '0' && text[4] <= '9';
  const size_t step = dense ? 2 : 3;  // "0824" or "-08-24"
  const auto month = Digits(text, dense ? 4 : 5, 2);
  const auto day = Digits(text, (dense ? 4 : 5) + step, 2);
  if (!month || !day) return std::nullopt;
  if (!dense && ((text[4] != '-' && text[4] != '/') || text[7] != text[4])) return std::nullopt;
  size_t at = dense ? 8 : 10;
  if (at >= text.size() || (text[at] != ' ' && text[at] != 'T')) return std::nullopt;
  while (at < text.size() && (text[at] == ' ' || text[at] == 'T')) ++at;
  return WithTime(DayNs(*year, *month, *day), text, at);
}

std::string LocalZoneName() {
  const char* zone = std::getenv("TZ");
  if (zone != nullptr && *zone == '<') {  // "<+0800>-08:00"
    const std::string_view text(zone);
    return std::string(text.substr(1, text.find('>') - 1));
  }
  if (zone != nullptr && *zone != 0) return zone;
  tm parts{};
  const time_t now = base::WallNs() / base::kNsPerSecond;
  localtime_r(&now, &parts);
  return parts.tm_zone;
}

int64_t LocalClock::ToLocal(int64_t utc_ns) {
  return utc_ns + OffsetSeconds(utc_ns / base::kNsPerSecond) * base::kNsPerSecond;
}

int64_t LocalClock::ToUtc(int64_t local_ns) {
  used_ = true;
  if (steady_ && std::abs(local_ns - around_ns_) < 12 * kHourNs) {
    return last_utc_ns_ = local_ns - offset_ns_;
  }
  // The zone's offsets around: of the readings that are right, the first that does not fall.
  std::array<int64_t, 3> offsets{};
  for (size_t i = 0; i < offsets.size(); ++i) {
    const int64_t near_ns = local_ns + (static_cast<int64_t>(i) - 1) * 26 * kHourNs;
    offsets[i] = OffsetSeconds(near_ns / base::kNsPerSecond) * base::kNsPerSecond;
  }
  std::sort(offsets.begin(), offsets.end(), std::greater<>());
  std::optional<int64_t> chosen;
  for (const int64_t offset : offsets) {
    const int64_t utc = local_ns - offset;
    if (ToLocal(utc) != local_ns) continue;
    if (!chosen || *chosen < last_utc_ns_ - kMinuteNs) chosen = utc;
  }
  // A time that the clock jumped over in spring: as if it had not.
  const int64_t utc = chosen.value_or(local_ns - offsets[1]);
  const int64_t offset = local_ns - utc;
  // Not kept around the hour that comes twice: the next reading may be the other one.
  steady_ = offsets[0] == offsets[2];
  around_ns_ = local_ns;
  offset_ns_ = offset;
  return last_utc_ns_ = utc;
}

std::optional<int64_t> LocalClock::Parse(std::string_view text) {
  const auto stamp = ParseStamp(text);
  if (!stamp) return std::nullopt;
  if (stamp->offset_s) return stamp->ns - *stamp->offset_s * base::kNsPerSecond;
  return ToUtc(stamp->ns);
}

}  // namespace epochmeter::ingest
