// SPDX-License-Identifier: Apache-2.0
// Dates of two or three short numbers, whose order no line tells alone: "05/06/24", "12/09".
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace epochmeter::ingest::log {

enum class DateOrder : uint8_t { kMonthFirst, kDayFirst, kYearFirst };
inline constexpr std::array<DateOrder, 3> kDateOrders = {
    DateOrder::kMonthFirst, DateOrder::kDayFirst, DateOrder::kYearFirst};

struct CivilDate {
  std::optional<int32_t> year;
  int32_t month = 0, day = 0;
};

// The numbers of such a date as printed.
struct NumberDate {
  int32_t a = 0, b = 0;
  std::optional<int32_t> c;
  bool short_year = false;  // c has two digits
  char mark = '/';

  // Nothing where the numbers can't be that ("13" as a month).
  std::optional<CivilDate> As(DateOrder order) const;
};

// Of a stamp's text; nothing when it begins with no such date.
std::optional<NumberDate> ReadNumberDate(std::string_view stamp_text);

// A date as if it were in UTC, in days since 1970; nothing for "02/30".
std::optional<int64_t> DayOf(int32_t year, int32_t month, int32_t day);
// The year that puts a month and day nearest to a local time.
std::optional<int32_t> NearestYear(const CivilDate& date, int64_t local_ns);

}  // namespace epochmeter::ingest::log
