// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/quantities.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/strings.h"
#include "ingest/log/units.h"

namespace epochmeter::ingest::log {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) {
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'z';
}

// Doubles hold these powers exactly, so one division of an exact integer rounds right.
constexpr std::array<double, 23> kPowers = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                            1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                            1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr uint64_t kMostExact = uint64_t{1} << 53;

constexpr int kMostDigits = 18;  // that an uint64_t holds whatever they are

constexpr std::array<uint64_t, 9> kIntegerPowers = {1,      10,      100,      1000,     10000,
                                                    100000, 1000000, 10000000, 100000000};

// How many of eight bytes, from the lowest on, are digits.
inline int LeadingDigits(uint64_t bytes) {
  const uint64_t high = (bytes + 0x4646'4646'4646'4646U) | (bytes - 0x3030'3030'3030'3030U);
  return std::countr_zero(high & 0x8080'8080'8080'8080U) / 8;
}

// The number that eight digits write, the first one in the lowest byte.
inline uint64_t EightDigits(uint64_t bytes) {
  bytes -= 0x3030'3030'3030'3030U;
  bytes = bytes * 10 + (bytes >> 8);  // pairs, in every second byte
  constexpr uint64_t kMask = 0x0000'00FF'0000'00FFU;
  return ((bytes & kMask) * (100 + (uint64_t{1000000} << 32)) +
          ((bytes >> 16) & kMask) * (1 + (uint64_t{10000} << 32))) >>
         32;
}

// What `count` digits at the begin of eight bytes write; 1 to 8 of them.
inline uint64_t SomeDigits(uint64_t bytes, int count) {
  // Zeros in front of fewer digits.
  if (count < 8) bytes = bytes << (64 - 8 * count) | (0x3030'3030'3030'3030U >> (8 * count));
  return EightDigits(bytes);
}

inline uint64_t LoadEight(const char* at) {
  uint64_t bytes = 0;
  std::memcpy(&bytes, at, sizeof bytes);
  return bytes;
}

// Appends the digits at `at` to a mantissa, which may run over; returns their end.
const char* TakeDigits(const char* at, const char* end, uint64_t* mantissa) {
  while (end - at >= 8) {
    const uint64_t bytes = LoadEight(at);
    const int count = LeadingDigits(bytes);
    if (count == 0) return at;
    *mantissa = *mantissa * kIntegerPowers[static_cast<size_t>(count)] + SomeDigits(bytes, count);
    at += count;
    if (count < 8) return at;
  }
  for (; at != end && IsDigit(*at); ++at) {
    *mantissa = *mantissa * 10 + static_cast<uint64_t>(*at - '0');
  }
  return at;
}

// The exponent at `at` ("e-05"), if one is there. Returns its end, or `at`.
const char* ScanExponent(const char* at, const char* end, int* exponent) {
  if (at == end || (*at | 0x20) != 'e') return at;
  const char* digit = at + 1;
  const bool negative = digit != end && *digit == '-';
  if (digit != end && (*digit == '-' || *digit == '+')) ++digit;
  if (digit == end || !IsDigit(*digit)) return at;
  int value = 0;
  for (; digit != end && IsDigit(*digit); ++digit) {
    if (value < 10000) value = value * 10 + (*digit - '0');
  }
  *exponent = negative ? -value : value;
  return digit;
}

// Most numbers: up to seven digits on each side of a point, and more text behind, perhaps with an
// exponent. A size of 0 when it is not that.
constexpr size_t kCommonBytes = 24;  // that may be looked at
inline NumberScan ScanCommon(const char* begin, const char* end) {
  const char* at = begin;
  const bool negative = *at == '-';
  if (negative) ++at;
  uint64_t bytes = LoadEight(at);
  const int whole = LeadingDigits(bytes);
  if (whole == 0 || whole == 8) return {};
  uint64_t mantissa = SomeDigits(bytes, whole);
  int exponent = 0;
  at += whole;
  if (*at == '.') {
    bytes = LoadEight(++at);
    const int part = LeadingDigits(bytes);
    if (part == 8) return {};
    if (part > 0) {
      mantissa = mantissa * kIntegerPowers[static_cast<size_t>(part)] + SomeDigits(bytes, part);
      exponent = -part;
      at += part;
    }
  } else if (*at == ',') {
    return {};
  }
  auto number = static_cast<double>(mantissa);
  if ((*at | 0x20) == 'e') {
    int written = 0;
    at = ScanExponent(at, end, &written);
    exponent += written;
    if (exponent < -22 || exponent > 22) return {};
    if (exponent > 0) number *= kPowers[static_cast<size_t>(exponent)];
  }
  if (exponent < 0) number /= kPowers[static_cast<size_t>(-exponent)];
  return {negative ? -number : number, static_cast<size_t>(at - begin)};
}

// "nan", "inf", "Infinity" in any case, behind the sign; a longer word is no number.
NumberScan ScanWord(const char* at, const char* end, bool negative, size_t sign) {
  const auto word = [&](std::string_view lower) {
    if (static_cast<size_t>(end - at) < lower.size()) return false;
    for (size_t i = 0; i < lower.size(); ++i) {
      if ((at[i] | 0x20) != lower[i]) return false;
    }
    const char* behind = at + lower.size();
    return behind == end || !(IsLetter(*behind) || IsDigit(*behind) || *behind == '_');
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (word("nan")) return {std::numeric_limits<double>::quiet_NaN(), sign + 3};
  if (word("inf")) return {negative ? -kInfinity : kInfinity, sign + 3};
  if (word("infinity")) return {negative ? -kInfinity : kInfinity, sign + 8};
  return {};
}

// Behind "2": ",097,152" as digits of the same number. Returns the end of the groups, or `at`.
const char* ScanGroups(const char* at, const char* end, uint64_t* mantissa) {
  while (end - at >= 4 && *at == ',' && IsDigit(at[1]) && IsDigit(at[2]) && IsDigit(at[3]) &&
         (end - at == 4 || !IsDigit(at[4])) && *mantissa < kMostExact / 1000) {
    *mantissa = *mantissa * 1000 +
                static_cast<uint64_t>((at[1] - '0') * 100 + (at[2] - '0') * 10 + (at[3] - '0'));
    at += 4;
  }
  return at;
}

// Of many digits, by the library; `begin` has no '+'.
NumberScan ScanSlow(const char* begin, const char* end, size_t sign) {
  NumberScan scan;
  const auto [last, error] = std::from_chars(begin, end, scan.number);
  if (error == std::errc::invalid_argument) return {};
  if (error == std::errc::result_out_of_range) {
    // Too small or too large for a double: 0 or infinity, by its exponent's sign.
    const std::string_view text(begin, static_cast<size_t>(last - begin));
    const bool small = text.find("e-") != text.npos || text.find("E-") != text.npos ||
                       text.substr(0, 2) == "0." || text.substr(0, 3) == "-0.";
    scan.number = small ? 0.0 : std::numeric_limits<double>::infinity();
    if (*begin == '-') scan.number = -scan.number;
  }
  scan.size = static_cast<size_t>(last - begin) + sign;
  return scan;
}

// "2h13m", "46s215ms", "1 day 2:03:04": the amount and unit at `at`; moves behind it.
std::optional<double> TakeAmount(std::string_view text, size_t* at) {
  const NumberScan scan = ScanNumber(text.substr(*at));
  if (scan.size == 0 || !IsDigit(text[*at])) return std::nullopt;
  size_t unit = *at + scan.size;
  while (unit < text.size() && text[unit] == ' ') ++unit;
  size_t end = unit;
  while (end < text.size() && (IsLetter(text[end]) || static_cast<signed char>(text[end]) < 0)) {
    ++end;
  }
  const std::optional<double> seconds = SecondsOfUnit(text.substr(unit, end - unit));
  if (!seconds) return std::nullopt;
  while (end < text.size() && (text[end] == ' ' || text[end] == ',')) ++end;
  *at = end;
  return scan.number * *seconds;
}

// "16:33:54.25", "05:57", "1:02:03:04": up to days, the last part with a fraction.
std::optional<double> ParseClock(std::string_view text) {
  constexpr std::array<double, 4> kFactors = {1, 60, 3600, 86400};
  std::array<double, 4> parts{};
  size_t count = 0;
  while (true) {
    const size_t colon = text.find(':');
    const std::string_view part = text.substr(0, colon);
    if (count == parts.size() || part.empty() || !IsDigit(part[0])) return std::nullopt;
    if (colon != std::string_view::npos &&
        part.find_first_not_of("0123456789") != std::string_view::npos) {
      return std::nullopt;
    }
    const NumberScan scan = ScanNumber(part);
    if (scan.size != part.size()) return std::nullopt;
    parts[count++] = scan.number;
    if (colon == std::string_view::npos) break;
    text.remove_prefix(colon + 1);
  }
  if (count < 2) return std::nullopt;
  double seconds = 0;
  for (size_t i = 0; i < count; ++i) {
    if (i > 0 && parts[i] >= (count == 4 && i == 1 ? 24 : 61)) return std::nullopt;
    seconds += parts[i] * kFactors[count - 1 - i];
  }
  return seconds;
}

// "1:02:03", "05:57", "1 day, 2:03:04", "3 days, 1:02:03" in seconds; -1 when it is not that.
int64_t CommonDuration(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&at, end](int most) {
    int64_t value = 0;
    const char* const begin = at;
    for (; at != end && IsDigit(*at) && at - begin < most; ++at) value = value * 10 + (*at - '0');
    return at == begin ? int64_t{-1} : value;
  };
  int64_t days = 0;
  int64_t first = number(4);
  if (first < 0) return -1;
  if (end - at > 9 && std::string_view(at, 4) == " day") {
    days = first;
    at += 4;
    if (*at == 's') ++at;
    if (*at++ != ',' || *at++ != ' ') return -1;
    first = number(4);
    if (first < 0) return -1;
  }
  int64_t seconds = first, parts = 1;
  for (; parts < 3 && at != end && *at == ':'; ++parts) {
    ++at;
    const int64_t part = number(2);
    if (part < 0 || part > 60) return -1;
    seconds = seconds * 60 + part;
  }
  return at == end && parts > 1 ? days * 86400 + seconds : -1;
}

// What Python and tensor libraries put around a number: "tensor(0.12, device='cuda:0')".
std::string_view WithoutCall(std::string_view text) {
  const size_t open = text.find('(');
  if (open == 0 || open == std::string_view::npos || text.back() != ')' || !IsLetter(text[0])) {
    return text;
  }
  text = text.substr(open + 1, text.size() - open - 2);
  return base::Trim(text.substr(0, text.find(',')));
}

std::string_view WithoutQuotes(std::string_view text) {
  if (text.size() < 2 || text.front() != text.back()) return text;
  return text.front() == '\'' || text.front() == '"' ? text.substr(1, text.size() - 2) : text;
}

// Every number, whatever its form.
[[gnu::noinline]] NumberScan ScanAny(std::string_view text) {
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  if (begin == end) return {};
  const bool negative = *begin == '-';
  const size_t sign = negative || *begin == '+' ? 1 : 0;
  const char* const first = begin + sign;
  const char* const unsigned_plus = *begin == '+' ? first : begin;
  uint64_t mantissa = 0;
  const char* at = TakeDigits(first, end, &mantissa);
  auto digits = at - first;
  if (at != end && *at == ',' && digits >= 1 && digits <= 3 && mantissa > 0) {
    at = ScanGroups(at, end, &mantissa);
  }
  int exponent = 0;
  if (at != end && *at == '.') {
    const char* const point = ++at;
    at = TakeDigits(at, end, &mantissa);
    exponent = -static_cast<int>(at - point);
    digits += at - point;
  }
  if (digits == 0) return ScanWord(first, end, negative, sign);
  if (at != end && (*at | 0x20) == 'e') {
    int written = 0;
    at = ScanExponent(at, end, &written);
    exponent += written;
  }
  // More digits than the mantissa holds, or a power that is not exact.
  if (digits > kMostDigits || mantissa > kMostExact || exponent < -22 || exponent > 22) {
    if (digits > kMostDigits || mantissa != 0) {
      return ScanSlow(unsigned_plus, end, static_cast<size_t>(unsigned_plus - begin));
    }
    exponent = 0;
  }
  auto number = static_cast<double>(mantissa);
  if (exponent < 0) {
    number /= kPowers[static_cast<size_t>(-exponent)];
  } else if (exponent > 0) {
    number *= kPowers[static_cast<size_t>(exponent)];
  }
  return {negative ? -number : number, static_cast<size_t>(at - begin)};
}

}  // namespace

NumberScan ScanNumber(std::string_view text) {
  if (text.size() >= kCommonBytes) {
    const NumberScan common = ScanCommon(text.data(), text.data() + text.size());
    if (common.size > 0) return common;
  }
  return ScanAny(text);
}

std::optional<NumberText> ReadNumberText(std::string_view text) {
  text = WithoutQuotes(base::Trim(text));
  if (text.empty()) return std::nullopt;
  text = WithoutCall(text);
  const NumberScan scan = ScanNumber(text);
  if (scan.size == 0) return std::nullopt;
  NumberText number{.number = scan.number, .unit = base::Trim(text.substr(scan.size))};
  if (number.unit.empty()) return number;
  if (const double factor = HumanFactor(number.unit); factor != 0) {
    return NumberText{.number = scan.number * factor, .unit = {}, .rounded = true};
  }
  // "3/10", "1:20" and "2-3" are no numbers with units.
  const char first = number.unit[0];
  const bool word = IsLetter(first) || first == '%' || static_cast<signed char>(first) < 0;
  if (!word || number.unit.size() > 24) return std::nullopt;
  return number;
}

std::optional<double> ParseNumberText(std::string_view text) {
  const auto number = ReadNumberText(text);
  return number ? std::optional(number->number) : std::nullopt;
}

std::optional<double> ParseDurationText(std::string_view text) {
  if (const int64_t seconds = CommonDuration(text); seconds >= 0) {
    return static_cast<double>(seconds);
  }
  text = base::Trim(text);
  while (!text.empty() && (text.back() == ',' || text.back() == '.')) text.remove_suffix(1);
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) text.remove_prefix(1);
  if (text.empty() || !IsDigit(text[0])) return std::nullopt;
  double seconds = 0;
  size_t at = 0;
  const size_t dash = text.find('-');
  if (dash != std::string_view::npos) {  // Slurm's days
    const NumberScan days = ScanNumber(text.substr(0, dash));
    if (days.size != dash) return std::nullopt;
    seconds = days.number * 86400;
    at = dash + 1;
  }
  while (at < text.size()) {
    const size_t begin = at;
    const auto amount = TakeAmount(text, &at);
    if (amount) {
      // Python's "-1 day, 23:59:58" is two seconds ago: only the days are negative.
      seconds += negative && begin == 0 ? -*amount : *amount;
      continue;
    }
    const auto clock = ParseClock(text.substr(begin));
    if (!clock) return std::nullopt;
    return negative && begin == 0 ? -*clock : seconds + *clock;
  }
  return seconds;
}

}  // namespace epochmeter::ingest::log
