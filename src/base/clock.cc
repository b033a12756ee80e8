// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <fmt/format.h>

#include <cmath>
#include <ctime>

namespace epochmeter::base {
namespace {

int64_t ReadClock(clockid_t id) {
  timespec ts{};
  clock_gettime(id, &ts);
  return static_cast<int64_t>(ts.tv_sec) * kNsPerSecond + ts.tv_nsec;
}

// Floor division, so that times before 1970 keep a positive sub-second part.
void SplitSeconds(int64_t ns, time_t* seconds, int64_t* rest_ns) {
  int64_t s = ns / kNsPerSecond;
  int64_t rest = ns % kNsPerSecond;
  if (rest < 0) {
    rest += kNsPerSecond;
    s -= 1;
  }
  *seconds = static_cast<time_t>(s);
  *rest_ns = rest;
}

// Calendar fields of a wall time by gmtime_r or localtime_r, and the ns beyond the second.
tm Fields(int64_t wall_ns, tm* (*convert)(const time_t*, tm*), int64_t* rest_ns) {
  time_t seconds = 0;
  SplitSeconds(wall_ns, &seconds, rest_ns);
  tm parts{};
  convert(&seconds, &parts);
  return parts;
}

void PutDigits(int64_t number, int digits, char* at) {
  for (int i = digits - 1; i >= 0; --i) {
    at[i] = static_cast<char>('0' + number % 10);
    number /= 10;
  }
}

}  // namespace

int64_t MonotonicNs() { return ReadClock(CLOCK_MONOTONIC); }
int64_t BoottimeNs() { return ReadClock(CLOCK_BOOTTIME); }
int64_t WallNs() { return ReadClock(CLOCK_REALTIME); }
int64_t ThreadCpuNs() { return ReadClock(CLOCK_THREAD_CPUTIME_ID); }

ClockAnchor ReadClockAnchor() {
  const int64_t before = MonotonicNs();
  ClockAnchor anchor{.mono_ns = 0, .boot_ns = BoottimeNs(), .wall_ns = WallNs()};
  anchor.mono_ns = before + (MonotonicNs() - before) / 2;
  return anchor;
}

std::string FormatUtc(int64_t wall_ns) {
  int64_t rest = 0;
  const tm parts = Fields(wall_ns, gmtime_r, &rest);
  // By hand: each record of a log has one. 64 bits of nanoseconds are years of four digits.
  std::string text = "0000-00-00T00:00:00.000Z";
  PutDigits(parts.tm_year + 1900, 4, text.data());
  PutDigits(parts.tm_mon + 1, 2, &text[5]);
  PutDigits(parts.tm_mday, 2, &text[8]);
  PutDigits(parts.tm_hour, 2, &text[11]);
  PutDigits(parts.tm_min, 2, &text[14]);
  PutDigits(parts.tm_sec, 2, &text[17]);
  PutDigits(rest / kNsPerMs, 3, &text[20]);
  return text;
}

std::string FormatUtcCompact(int64_t wall_ns) {
  int64_t rest = 0;
  const tm parts = Fields(wall_ns, gmtime_r, &rest);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string FormatLocalTime(int64_t wall_ns) {
  int64_t rest = 0;
  const tm parts = Fields(wall_ns, localtime_r, &rest);
  return fmt::format("{:02}:{:02}:{:02}", parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string FormatDuration(double seconds) {
  if (!std::isfinite(seconds)) return "unknown";
  if (seconds < 0) return "-" + FormatDuration(-seconds);
  if (seconds < 0.0995) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds < 9.995) return fmt::format("{:.2f} s", seconds);
  if (seconds < 99.95) return fmt::format("{:.1f} s", seconds);
  if (seconds >= 1e15) return fmt::format("{:.3g} s", seconds);  // no clock measured that
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace epochmeter::base
