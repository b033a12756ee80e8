// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/number_forms.h"

#include <limits>
#include <optional>

#include "base/strings.h"
#include "ingest/log/units.h"

namespace epochmeter::ingest::log {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) {
  return (static_cast<unsigned char>(c) | 0x20U) - 'a' < 26U ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool DigitsAt(std::string_view text, size_t at, size_t* end) {
  *end = at;
  while (*end < text.size() && IsDigit(text[*end])) ++*end;
  return *end > at;
}

bool SkipClock(std::string_view text, size_t begin, size_t* end) {
  size_t at = 0;
  if (!DigitsAt(text, begin, &at) || at >= text.size() || text[at] != ':') return false;
  size_t next = 0;
  if (!DigitsAt(text, at + 1, &next)) return false;
  if (next < text.size() && text[next] == ':' && DigitsAt(text, next + 1, &at)) next = at;
  if (next < text.size() && (text[next] == '.' || text[next] == ',') &&
      DigitsAt(text, next + 1, &at) && at - next > 3) {
    next = at;
  }
  *end = next;
  return true;
}

// "2h3m", "1m 5s", "2 hours 3 minutes", "1d 02:01:00": amounts of ever smaller units.
bool SkipAmounts(std::string_view text, size_t begin, size_t* end) {
  double smallest = std::numeric_limits<double>::infinity();
  int amounts = 0;
  size_t behind = begin;
  for (size_t at = begin; at < text.size();) {
    size_t clock = 0;
    if (amounts > 0 && smallest > 3600 && SkipClock(text, at, &clock)) {
      *end = clock;
      return true;
    }
    size_t unit = NumberEnd(text, at);
    if (unit == at || !IsDigit(text[at])) break;
    if (unit < text.size() && text[unit] == ' ') ++unit;
    size_t last = unit;
    while (last < text.size() && IsLetter(text[last])) ++last;
    const std::optional<double> seconds = SecondsOfUnit(text.substr(unit, last - unit));
    if (!seconds || *seconds >= smallest) break;
    smallest = *seconds;
    ++amounts;
    at = behind = last;
    if (at < text.size() && text[at] == ',') ++at;
    if (at < text.size() && text[at] == ' ') ++at;
  }
  if (amounts >= 2) *end = behind;
  return amounts >= 2;
}

}  // namespace

size_t NumberEnd(std::string_view text, size_t at) {
  size_t end = at;
  if (end < text.size() && (text[end] == '-' || text[end] == '+')) ++end;
  while (end < text.size() && IsDigit(text[end])) ++end;
  if (end < text.size() && text[end] == '.' && (end + 1 >= text.size() || text[end + 1] != '.')) {
    ++end;
    while (end < text.size() && IsDigit(text[end])) ++end;
    if (text[end - 1] == '.' && end - 1 > at && !(end < text.size() && text[end] == 'e')) --end;
  }
  size_t exponent = end;
  if (exponent < text.size() && (text[exponent] | 0x20) == 'e') {
    ++exponent;
    if (exponent < text.size() && (text[exponent] == '-' || text[exponent] == '+')) ++exponent;
    if (exponent < text.size() && IsDigit(text[exponent])) {
      while (exponent < text.size() && IsDigit(text[exponent])) ++exponent;
      end = exponent;
    }
  }
  return end;
}

bool SkipStamp(std::string_view text, size_t begin, size_t* end) {
  size_t a = 0, b = 0, c = 0;
  if (!DigitsAt(text, begin, &a) || a >= text.size()) return false;
  const char mark = text[a];
  if (mark != '-' && mark != '/' && mark != '.') return false;
  if (!DigitsAt(text, a + 1, &b) || b >= text.size() || text[b] != mark) return false;
  if (!DigitsAt(text, b + 1, &c)) return false;
  // "6100/6100/6101" is none: two parts have two digits, the third has two or four.
  int years = 0;
  for (const size_t size : {a - begin, b - a - 1, c - b - 1}) {
    if (mark == '/' && size > 2 && size != 4) return false;
    years += size > 2 ? 1 : 0;
  }
  if (mark == '/' && years > 1) return false;
  *end = c;
  size_t clock = c;
  if (clock < text.size() && (text[clock] == ' ' || text[clock] == 'T')) {
    size_t after = 0;
    if (SkipClock(text, clock + 1, &after)) *end = after;
  }
  return true;
}

bool SkipDuration(std::string_view text, size_t begin, size_t* end) {
  size_t at = begin;
  size_t days = 0;
  if (DigitsAt(text, at, &days)) {
    for (const std::string_view word : {" days, ", " day, ", " days ", " day "}) {
      if (text.substr(days, word.size()) == word) at = days + word.size();
    }
  }
  return SkipClock(text, at, end) || SkipAmounts(text, begin, end);
}

bool SkipThousands(std::string_view text, size_t begin, size_t* end) {
  size_t at = 0;
  if (!DigitsAt(text, begin, &at) || at - begin > 3 || at >= text.size()) return false;
  bool any = false;
  while (at + 3 < text.size() + 1 && at < text.size() && text[at] == ',') {
    size_t next = 0;
    if (!DigitsAt(text, at + 1, &next) || next - at != 4) break;
    at = next;
    any = true;
  }
  if (any) *end = at;
  return any;
}

bool ReadTotal(std::string_view text, size_t end, size_t* total_begin, size_t* total_end) {
  size_t at = end;
  while (at < text.size() && text[at] == ' ') ++at;
  const bool slash = at < text.size() && text[at] == '/';
  const bool of = !slash && text.substr(at, 3) == "of ";
  if (!slash && !of) return false;
  at += slash ? 1 : 3;
  while (at < text.size() && text[at] == ' ') ++at;
  *total_begin = at;
  if (!DigitsAt(text, at, total_end)) return false;
  size_t third = 0;  // "6100/6100/6101" is no position
  if (slash && *total_end < text.size() && text[*total_end] == '/' &&
      DigitsAt(text, *total_end + 1, &third)) {
    return false;
  }
  // "0.5/0.9" are two figures.
  const size_t point = text.substr(0, end).find_last_not_of("0123456789");
  const bool fraction = point != std::string_view::npos && text[point] == '.';
  if (fraction && *total_end + 1 < text.size() && text[*total_end] == '.' &&
      IsDigit(text[*total_end + 1])) {
    return false;
  }
  // "1/2/2024", "1/2.5"
  return *total_end >= text.size() || (text[*total_end] != '/' && !IsLetter(text[*total_end])) ||
         slash;
}

}  // namespace epochmeter::ingest::log
