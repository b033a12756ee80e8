// SPDX-License-Identifier: Apache-2.0
// Times of day and dates as programs write them into their lines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace epochmeter::ingest {

// The decimal number in text[at, at + count).
std::optional<int> Digits(std::string_view text, size_t at, size_t count);
// "06:59:57,274" or "06:59:57.846000" at `at`, as ns of the day. `end` becomes the place behind it.
std::optional<int64_t> TimeOfDayNs(std::string_view text, size_t at, size_t* end = nullptr);
// The begin of a day as if it were in UTC, in ns since 1970; years 1970 to 2115.
std::optional<int64_t> DayNs(int year, int month, int day);

// A date with a time. `ns` is as if it were in UTC, `offset_s` the zone where one is written: what
// local time is ahead of UTC.
struct Stamp {
  int64_t ns = 0;
  std::optional<int64_t> offset_s;
};
// The whole text as "2026/08/24 10:11:12.123", "2026-08-24 10:11:12", "20260824 10:11:12" or ISO
// 8601 with or without zone; or as C's asctime writes it, "Mon Aug 24 10:11:12 2026".
std::optional<Stamp> ParseStamp(std::string_view text);

// What TZ says, else the abbreviation of the machine's zone.
std::string LocalZoneName();

// Local time to UTC, in the zone of the process (TZ). One thread.
class LocalClock {
 public:
  // Of the hour that comes twice in a year, the reading that does not lie before the one before.
  int64_t ToUtc(int64_t local_ns);
  // As ParseStamp, in UTC.
  std::optional<int64_t> Parse(std::string_view text);
  static int64_t ToLocal(int64_t utc_ns);
  // True once a time without a zone was read.
  bool used() const { return used_; }

 private:
  bool used_ = false;
  bool steady_ = false;  // the offset holds for half a day around `around_ns_`, local
  int64_t around_ns_ = 0, offset_ns_ = 0;
  int64_t last_utc_ns_ = 0;
};

}  // namespace epochmeter::ingest
