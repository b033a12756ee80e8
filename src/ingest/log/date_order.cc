// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/date_order.h"

#include <chrono>
#include <cstdlib>

#include "base/clock.h"
#include "ingest/wall_time.h"

namespace epochmeter::ingest::log {
namespace {

constexpr int64_t kDayNs = 86400 * base::kNsPerSecond;

// One or two digits at `at`, and where they end.
std::optional<int32_t> ShortNumber(std::string_view text, size_t* at) {
  size_t end = *at;
  int32_t number = 0;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9' && end < *at + 5) {
    number = number * 10 + (text[end++] - '0');
  }
  if (end == *at || end > *at + 4) return std::nullopt;
  *at = end;
  return number;
}

int32_t FullYear(int32_t two_digits) { return two_digits + (two_digits < 70 ? 2000 : 1900); }

}  // namespace

std::optional<CivilDate> NumberDate::As(DateOrder order) const {
  CivilDate date;
  if (order == DateOrder::kYearFirst) {
    if (!c || !short_year) return std::nullopt;
    date = {.year = FullYear(a), .month = b, .day = *c};
  } else {
    const bool month_first = order == DateOrder::kMonthFirst;
    date = {.year = c, .month = month_first ? a : b, .day = month_first ? b : a};
    if (c && short_year) date.year = FullYear(*c);
  }
  const int32_t year = date.year.value_or(2000);  // a leap year
  return DayOf(year, date.month, date.day) ? std::optional(date) : std::nullopt;
}

std::optional<NumberDate> ReadNumberDate(std::string_view text) {
  size_t at = !text.empty() && text[0] == '[' ? 1 : 0;
  const size_t begin = at;
  NumberDate date;
  const auto a = ShortNumber(text, &at);
  if (!a || at - begin > 2 || at >= text.size()) return std::nullopt;
  date.mark = text[at];
  if (date.mark != '/' && date.mark != '-' && date.mark != '.') return std::nullopt;
  size_t second = ++at;
  const auto b = ShortNumber(text, &at);
  if (!b || at - second > 2) return std::nullopt;
  date.a = *a, date.b = *b;
  if (at >= text.size() || text[at] != date.mark) return date;
  second = ++at;
  date.c = ShortNumber(text, &at);
  date.short_year = at - second == 2;
  return date.c ? std::optional(date) : std::nullopt;
}

std::optional<int64_t> DayOf(int32_t year, int32_t month, int32_t day) {
  const auto ns = DayNs(year, month, day);
  return ns ? std::optional(*ns / kDayNs) : std::nullopt;
}

std::optional<int32_t> NearestYear(const CivilDate& date, int64_t local_ns) {
  const std::chrono::sys_days days{std::chrono::days(local_ns / kDayNs)};
  const int32_t middle = static_cast<int>(std::chrono::year_month_day(days).year());
  std::optional<int32_t> best;
  int64_t least = 0;
  // Four years: a 29th of February is in one of them.
  for (int32_t year = middle - 4; year <= middle + 1; ++year) {
    const auto day = DayOf(year, date.month, date.day);
    if (!day) continue;
    const int64_t distance = std::abs(*day - local_ns / kDayNs);
    if (best && distance >= least) continue;
    best = year;
    least = distance;
  }
  return best;
}

}  // namespace epochmeter::ingest::log
