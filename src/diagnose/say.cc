// SPDX-License-Identifier: Apache-2.0
#include "diagnose/say.h"

#include <array>
#include <cmath>

namespace epochmeter::diagnose {
namespace {

// Three significant digits without an exponent.
std::string Digits(double value) {
  const double size = std::fabs(value);
  if (!(size < 1e15)) return fmt::format("{:.3g}", value);
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  if (size >= 9.995) return fmt::format("{:.1f}", value);
  if (size >= 0.9995 || size == 0) return fmt::format("{:.2f}", value);
  return fmt::format("{:.3g}", value);
}

}  // namespace

std::string SayPercent(double ratio) {
  const double percent = ratio * 100;
  if (std::fabs(percent) >= 9.95 || percent == 0) return fmt::format("{:.0f} %", percent);
  return fmt::format("{:.1f} %", percent);
}

std::string SayBytes(double bytes) {
  static constexpr std::array<const char*, 6> kUnits = {"B", "kB", "MB", "GB", "TB", "PB"};
  size_t unit = 0;
  while (std::fabs(bytes) >= 999.5 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  if (unit == 0) return fmt::format("{:.0f} B", bytes);
  return Digits(bytes) + " " + kUnits[unit];
}

std::string SaySeconds(double seconds) {
  const double size = std::fabs(seconds);
  if (size < 0.9995) return Digits(seconds * 1e3) + " ms";
  if (size < 119.5) return Digits(seconds) + " s";
  const double minutes = std::floor(seconds / 60);
  if (seconds < 7170) return fmt::format("{:.0f} min {:.0f} s", minutes, seconds - minutes * 60);
  const double hours = std::floor(seconds / 3600);
  return fmt::format("{:.0f} h {:.0f} min", hours, std::floor((seconds - hours * 3600) / 60));
}

std::string SayNumber(double value) { return Digits(value); }

}  // namespace epochmeter::diagnose
