// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/stamp_text.h"

#include <array>
#include <limits>

#include "base/clock.h"
#include "base/strings.h"

namespace epochmeter::ingest::log {
namespace {

constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
constexpr std::string_view kWeekdays = "MonTueWedThuFriSatSun";
// Seconds since 1970 that a log may hold: 2001 to 2036.
constexpr int64_t kLeastUnix = 1'000'000'000, kMostUnix = 2'100'000'000;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// A reader that never runs over the end: '\0' stands there.
struct Cursor {
  static constexpr int64_t kTooMuch = std::numeric_limits<int64_t>::max();
  static constexpr int64_t kMostNumber = kTooMuch / 10;
  std::string_view text;
  size_t at;

  char Peek(size_t ahead = 0) const { return at + ahead < text.size() ? text[at + ahead] : '\0'; }
  bool Take(char c) {
    if (Peek() != c) return false;
    ++at;
    return true;
  }
  bool Take(std::string_view word) {
    if (text.substr(at, word.size()) != word) return false;
    at += word.size();
    return true;
  }
  bool SkipSpaces() {
    const size_t begin = at;
    while (Peek() == ' ') ++at;
    return at != begin;
  }
  size_t CountDigits() const {
    size_t count = 0;
    while (IsDigit(Peek(count))) ++count;
    return count;
  }
  // `count` digits, which are known to be there; kTooMuch where they are more than a number holds.
  int64_t Number(size_t count) {
    int64_t number = 0;
    for (size_t i = 0; i < count; ++i) {
      number = number < kMostNumber ? number * 10 + (text[at + i] - '0') : kTooMuch;
    }
    at += count;
    return number;
  }
  // The number of `least` to `most` digits, no more following.
  std::optional<int32_t> Field(size_t least, size_t most) {
    const size_t count = CountDigits();
    if (count < least || count > most) return std::nullopt;
    return static_cast<int32_t>(Number(count));
  }
};

// The digits of a fraction in units of 1e-9; what is finer is dropped.
int64_t FractionNs(Cursor& in) {
  int64_t ns = 0, unit = base::kNsPerSecond / 10;
  for (; IsDigit(in.Peek()); ++in.at) {
    ns += (in.Peek() - '0') * unit;
    unit /= 10;
  }
  return ns;
}

// ".123456", ",845", ".123.456" of MindSpore, and ":123" behind a date.
int64_t ReadFraction(Cursor& in, bool dated) {
  const char mark = in.Peek();
  if ((mark == '.' || mark == ',') && IsDigit(in.Peek(1))) {
    ++in.at;
    const size_t count = in.CountDigits();
    int64_t ns = FractionNs(in);
    if (count != 3 || in.Peek() != '.') return ns;
    Cursor more{in.text, in.at + 1};
    if (more.CountDigits() != 3) return ns;
    ns += more.Number(3) * 1000;
    in.at = more.at;
    return ns;
  }
  Cursor more{in.text, in.at + 1};
  if (mark != ':' || !dated || more.CountDigits() != 3) return 0;
  const int64_t ns = FractionNs(more);
  in.at = more.at;
  return ns;
}

// " PM" makes an hour of 1 to 12 one of 0 to 23.
bool ReadHalfDay(Cursor& in, int32_t& hour) {
  Cursor ahead = in;
  ahead.SkipSpaces();
  const char half = static_cast<char>(ahead.Peek() & ~0x20);
  if ((half != 'A' && half != 'P') || (ahead.Peek(1) & ~0x20) != 'M') return false;
  const char next = static_cast<char>(ahead.Peek(2) | 0x20);
  if ((next >= 'a' && next <= 'z') || hour < 1 || hour > 12) return false;
  hour = hour % 12 + (half == 'P' ? 12 : 0);
  in.at = ahead.at + 2;
  return true;
}

// "10:38:20.123456", "9:46:40 PM", "21时46分40秒"; of one digit only behind a date.
bool ReadTimeOfDay(Cursor& in, RawStamp& stamp, bool dated) {
  Cursor ahead = in;
  stamp.clock_at = in.at;
  const size_t digits = ahead.CountDigits();
  if (digits == 0 || digits > 2 || (digits == 1 && !dated)) return false;
  auto hour = static_cast<int32_t>(ahead.Number(digits));
  const bool chinese = ahead.Take("时");
  if (!chinese && !ahead.Take(':')) return false;
  const auto minute = ahead.Field(2, 2);
  if (!minute || !(chinese ? ahead.Take("分") : ahead.Take(':'))) return false;
  const auto second = ahead.Field(2, 2);
  if (!second || hour > 23 || *minute > 59 || *second > 60) return false;
  if (chinese) ahead.Take("秒");
  const int64_t fraction_ns = ReadFraction(ahead, dated);
  ReadHalfDay(ahead, hour);
  stamp.of_day_ns = ((hour * 60LL + *minute) * 60LL + *second) * base::kNsPerSecond + fraction_ns;
  in = ahead;
  return true;
}

// "Z", "+08:00", "+0800", "-03", " +0800", " UTC"; leaves all else alone.
void ReadZone(Cursor& in, RawStamp& stamp) {
  Cursor ahead = in;
  const bool spaced = ahead.SkipSpaces();
  const auto ends = [&](size_t n) {
    const char next = static_cast<char>(ahead.Peek(n) | 0x20);
    return !(next >= 'a' && next <= 'z') && !IsDigit(ahead.Peek(n));
  };
  if (!spaced && ahead.Peek() == 'Z' && ends(1)) {
    stamp.offset_s = 0;
    ++in.at;
    return;
  }
  const std::string_view word = in.text.substr(ahead.at, 3);
  if ((word == "UTC" || word == "GMT") && ends(3)) {
    stamp.offset_s = 0;
    in.at = ahead.at + 3;
    return;
  }
  const char sign = ahead.Peek();
  if (sign != '+' && sign != '-') return;
  ++ahead.at;
  const size_t digits = ahead.CountDigits();
  const bool colon = digits == 2 && ahead.Peek(2) == ':' && IsDigit(ahead.Peek(3));
  if (digits != 4 && !colon && (digits != 2 || spaced || !ends(2))) return;
  const int64_t hours = ahead.Number(2);
  if (colon) ++ahead.at;
  const auto minutes = digits == 2 && !colon ? std::optional(0) : ahead.Field(2, 2);
  if (!minutes || hours > 14 || *minutes > 59) return;
  const int64_t offset_s = (hours * 60 + *minutes) * 60;
  stamp.offset_s = sign == '-' ? -offset_s : offset_s;
  in.at = ahead.at;
}

// What stands between a date and its time: spaces, 'T', '-', '_', ':' or ", ".
bool ReadDateEnd(Cursor& in) {
  if (in.Take(',')) return in.SkipSpaces();
  if (in.SkipSpaces()) return true;
  return in.Take('T') || in.Take('_') || in.Take('-') || in.Take(':') || in.Take('t');
}

bool ReadTimeBehindDate(Cursor& in, RawStamp& stamp) {
  if (!ReadDateEnd(in) || !ReadTimeOfDay(in, stamp, true)) return false;
  ReadZone(in, stamp);
  return true;
}

bool InYear(int32_t month, int32_t day) {
  return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

// "2026-08-24 ...", "2026/8/4 ...", "2022年10月07日 ..."
bool ReadYearFirst(Cursor& in, RawStamp& stamp) {
  const auto year = static_cast<int32_t>(in.Number(4));
  const bool chinese = in.Take("年");
  const char mark = in.Peek();
  if (!chinese && mark != '-' && mark != '/' && mark != '.') return false;
  if (!chinese) ++in.at;
  const auto month = in.Field(1, 2);
  if (!month || !(chinese ? in.Take("月") : in.Take(mark))) return false;
  const auto day = in.Field(1, 2);
  if (!day || year < 1970 || !InYear(*month, *day)) return false;
  if (chinese) in.Take("日");
  stamp.year = year, stamp.month = *month, stamp.day = *day;
  if (chinese && IsDigit(in.Peek())) return ReadTimeOfDay(in, stamp, true);
  return ReadTimeBehindDate(in, stamp);
}

// "20260824 10:11:12", "20260824_101112", "20260824T101112Z"
bool ReadDense(Cursor& in, RawStamp& stamp) {
  const auto year = static_cast<int32_t>(in.Number(4));
  const auto month = static_cast<int32_t>(in.Number(2));
  const auto day = static_cast<int32_t>(in.Number(2));
  if (year < 1970 || year > 2115 || !InYear(month, day)) return false;
  stamp.year = year, stamp.month = month, stamp.day = day;
  if (!ReadDateEnd(in)) return false;
  if (in.CountDigits() != 6) {
    if (!ReadTimeOfDay(in, stamp, true)) return false;
  } else {
    stamp.clock_at = in.at;
    const int64_t hour = in.Number(2), minute = in.Number(2), second = in.Number(2);
    if (hour > 23 || minute > 59 || second > 60) return false;
    stamp.of_day_ns = ((hour * 60 + minute) * 60 + second) * base::kNsPerSecond;
    *stamp.of_day_ns += ReadFraction(in, false);
  }
  ReadZone(in, stamp);
  return true;
}

// Two numbers of a date: which one is the month is told by a number over 12, else left open.
bool SetPair(int32_t a, int32_t b, RawStamp& stamp) {
  if (a < 1 || b < 1 || a > 31 || b > 31 || (a > 12 && b > 12)) return false;
  if (a > 12) {
    stamp.day = a, stamp.month = b;
  } else if (b > 12) {
    stamp.month = a, stamp.day = b;
  } else {
    stamp.first = a, stamp.second = b;
  }
  return true;
}

// "12/09 10:38:20", "05/06/24 10:38:20", "10/7/2022 9:46:40 PM", "13.09.2024 ..."
bool ReadPairDate(Cursor& in, RawStamp& stamp) {
  const size_t digits = in.CountDigits();
  const auto a = static_cast<int32_t>(in.Number(digits));
  const char mark = in.Peek();
  ++in.at;
  const auto b = in.Field(1, 2);
  if (!b) return false;
  if (in.Peek() != mark || !IsDigit(in.Peek(1))) {
    // "1/50 10:00:00" is a count as likely as a date: both numbers have two digits in a date.
    if (mark == '.' || digits != 2 || in.text[in.at - 2] == mark) return false;
    return SetPair(a, *b, stamp) && ReadTimeBehindDate(in, stamp);
  }
  ++in.at;
  const size_t year_digits = in.CountDigits();
  if (year_digits != 2 && year_digits != 4) return false;
  const auto year = static_cast<int32_t>(in.Number(year_digits));
  if (year_digits == 4) {
    if (year < 1970) return false;
    stamp.year = year;
    return SetPair(a, *b, stamp) && ReadTimeBehindDate(in, stamp);
  }
  if (a > 31) {  // "99/08/24"
    stamp.year = (a < 70 ? 2000 : 1900) + a, stamp.month = *b, stamp.day = year;
    return InYear(*b, year) && ReadTimeBehindDate(in, stamp);
  }
  stamp.year = (year < 70 ? 2000 : 1900) + year;
  return SetPair(a, *b, stamp) && ReadTimeBehindDate(in, stamp);
}

// Seconds, ms, us or ns since 1970, by the number of digits; a fraction only of seconds.
bool ReadUnix(Cursor& in, RawStamp& stamp, size_t digits) {
  int64_t unit_ns = base::kNsPerSecond;
  for (size_t i = 10; i < digits; ++i) unit_ns /= 10;
  const int64_t number = in.Number(digits);
  const int64_t seconds = number / (base::kNsPerSecond / unit_ns);
  if (seconds < kLeastUnix || seconds > kMostUnix) return false;
  stamp.unix_ns = number * unit_ns;
  if (in.Peek() == '.' && IsDigit(in.Peek(1)) && digits <= 13) {
    ++in.at;
    *stamp.unix_ns += FractionNs(in) / (base::kNsPerSecond / unit_ns);
  }
  const char next = static_cast<char>(in.Peek() | 0x20);
  return !(next >= 'a' && next <= 'z') && in.Peek() != '/' && in.Peek() != '%';
}

// "2026-08-24 10:11:12" with what may follow, where most stamps end: without a look at each digit.
bool ReadCommon(Cursor& in, RawStamp& stamp) {
  constexpr size_t kBytes = 19;
  if (in.at + kBytes > in.text.size()) return false;
  const char* const c = in.text.data() + in.at;
  if (c[13] != ':' || c[16] != ':' || c[4] != c[7] || (c[4] != '-' && c[4] != '/') ||
      (c[10] != ' ' && c[10] != 'T')) {
    return false;
  }
  bool digits = true;
  const auto two = [&](size_t i) {
    digits = digits && IsDigit(c[i]) && IsDigit(c[i + 1]);
    return (c[i] - '0') * 10 + (c[i + 1] - '0');
  };
  const int32_t year = two(0) * 100 + two(2), month = two(5), day = two(8);
  const int32_t hour = two(11), minute = two(14), second = two(17);
  if (!digits || year < 1970 || !InYear(month, day) || hour > 23 || minute > 59 || second > 60 ||
      IsDigit(in.Peek(kBytes))) {
    return false;
  }
  stamp.year = year, stamp.month = month, stamp.day = day;
  stamp.clock_at = in.at + 11;
  in.at += kBytes;
  stamp.of_day_ns = ((hour * 60LL + minute) * 60 + second) * base::kNsPerSecond;
  if (in.Peek() == ' ' && (in.Peek(1) | 0x20) != 'a' && (in.Peek(1) | 0x20) != 'p') {
    const char zone = in.Peek(1);
    if (zone != '+' && zone != '-' && zone != 'U' && zone != 'G') return true;
  }
  *stamp.of_day_ns += ReadFraction(in, true);
  ReadZone(in, stamp);
  int32_t half_hour = hour;
  if (ReadHalfDay(in, half_hour))
    *stamp.of_day_ns += (half_hour - hour) * 3600 * base::kNsPerSecond;
  return true;
}

int32_t MonthOf(std::string_view name) {
  const size_t place = kMonths.find(name);
  if (name.size() != 3 || place == std::string_view::npos || place % 3 != 0) return 0;
  return static_cast<int32_t>(place / 3) + 1;
}

// Behind the time of a date in words: " 2025", " UTC 2025".
void ReadYearBehind(Cursor& in, RawStamp& stamp) {
  Cursor ahead = in;
  if (!stamp.offset_s) {
    ReadZone(ahead, stamp);
    Cursor word = ahead;  // "CST": not unique in the world, only stepped over
    word.SkipSpaces();
    size_t letters = 0;
    while (word.Peek(letters) >= 'A' && word.Peek(letters) <= 'Z') ++letters;
    if (letters >= 3 && letters <= 5 && word.Peek(letters) == ' ') ahead.at = word.at + letters;
  }
  Cursor year = ahead;
  if (year.SkipSpaces() && year.CountDigits() == 4) {
    const auto number = static_cast<int32_t>(year.Number(4));
    if (number >= 1970 && number <= 2115 && !IsDigit(year.Peek())) {
      stamp.year = number;
      in.at = year.at;
      return;
    }
  }
  if (stamp.offset_s) in.at = ahead.at;
}

// "Sun Feb 23 16:24:18 2025", "Dec  9 10:45:45", "Feb 23, 2025 16:24:18", "23 Feb 2025 16:24:18"
bool ReadInWords(Cursor& in, RawStamp& stamp) {
  const size_t weekday = kWeekdays.find(in.text.substr(in.at, 3));
  if (weekday != std::string_view::npos && weekday % 3 == 0) {
    in.at += 3;
    in.Take(',');
    if (!in.SkipSpaces()) return false;
  }
  std::optional<int32_t> day = in.Field(1, 2);
  if (day && !in.SkipSpaces() && !in.Take('-') && !in.Take('/')) return false;
  const int32_t month = MonthOf(in.text.substr(in.at, 3));
  if (month == 0) return false;
  in.at += 3;
  if (!day) {
    if (!in.SkipSpaces()) return false;
    day = in.Field(1, 2);
    in.Take(',');
  }
  if (!day || !InYear(month, *day)) return false;
  stamp.month = month, stamp.day = *day;
  Cursor year = in;
  if ((year.SkipSpaces() || year.Take('-') || year.Take('/')) && year.CountDigits() == 4) {
    stamp.year = static_cast<int32_t>(year.Number(4));
    if (*stamp.year < 1970) return false;
    in = year;
  }
  if (!ReadTimeBehindDate(in, stamp)) return false;
  if (!stamp.year) ReadYearBehind(in, stamp);
  return true;
}

bool ReadDigitsFirst(Cursor& in, RawStamp& stamp) {
  const size_t digits = in.CountDigits();
  const char next = in.Peek(digits);
  if (digits <= 2) {
    if (next == ':' || next == '\xE6') return ReadTimeOfDay(in, stamp, false);  // 时
    if (next == '/' || next == '-' || next == '.') {
      return IsDigit(in.Peek(digits + 1)) ? ReadPairDate(in, stamp) : ReadInWords(in, stamp);
    }
    return next == ' ' && ReadInWords(in, stamp);
  }
  if (digits == 4) return ReadYearFirst(in, stamp);
  if (digits == 8) return ReadDense(in, stamp);
  if (digits == 10 || digits == 13 || digits == 16 || digits == 19) {
    return ReadUnix(in, stamp, digits);
  }
  return false;
}

}  // namespace

size_t ReadStampAt(std::string_view text, size_t at, RawStamp& stamp) {
  Cursor in{text, at};
  const char first = in.Peek();
  stamp = RawStamp{};
  bool found = false;
  if (ReadCommon(in, stamp)) {
    found = true;
  } else if (IsDigit(first)) {
    found = ReadDigitsFirst(in, stamp);
  } else if (first >= 'A' && first <= 'W' && in.Peek(1) >= 'a' && in.Peek(2) >= 'a' &&
             (in.Peek(3) == ' ' || in.Peek(3) == ',')) {
    found = ReadInWords(in, stamp);
  }
  if (!found) return at;
  stamp.text = text.substr(at, in.at - at);
  stamp.clock_at -= stamp.clock_at > at ? at : stamp.clock_at;
  return in.at;
}

std::optional<RawStamp> ParseStampText(std::string_view text) {
  text = base::Trim(text);
  const size_t begin = text.size() > 2 && text.front() == '[' && text.back() == ']' ? 1 : 0;
  RawStamp stamp;
  const size_t end = ReadStampAt(text, begin, stamp);
  return end > begin && end == text.size() - begin ? std::optional(stamp) : std::nullopt;
}

size_t ReadGlogStampAt(std::string_view text, size_t at, RawStamp& stamp, LogLevel& level) {
  constexpr std::string_view kLetters = "DIWEFCT";
  constexpr std::array<LogLevel, 7> kLevels = {
      LogLevel::kDebug, LogLevel::kInfo,  LogLevel::kWarning, LogLevel::kError,
      LogLevel::kFatal, LogLevel::kFatal, LogLevel::kDebug};
  Cursor in{text, at};
  const size_t letter = kLetters.find(in.Peek());
  if (letter == std::string_view::npos) return at;
  ++in.at;
  const size_t digits = in.CountDigits();
  if ((digits != 4 && digits != 8) || in.Peek(digits) != ' ') return at;
  stamp = RawStamp{};
  Cursor unset = in;  // glog before it knows the zone
  if (unset.Take("0000 00:00:") && unset.CountDigits() == 10) {
    in = unset;
    if (!ReadUnix(in, stamp, 10)) return at;
  } else {
    if (digits == 8) stamp.year = static_cast<int32_t>(in.Number(4));
    const auto month = static_cast<int32_t>(in.Number(2)), day = static_cast<int32_t>(in.Number(2));
    in.SkipSpaces();
    if (!InYear(month, day) || !ReadTimeOfDay(in, stamp, true)) return at;
    stamp.month = month, stamp.day = day;
  }
  level = kLevels[letter];
  stamp.text = text.substr(at, in.at - at);
  stamp.clock_at -= stamp.clock_at > at ? at : stamp.clock_at;
  return in.at;
}

}  // namespace epochmeter::ingest::log
