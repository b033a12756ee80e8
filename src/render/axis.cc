// SPDX-License-Identifier: Apache-2.0
#include "render/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace epochmeter::render {
namespace {

constexpr double kWantedTicks = 5;

// The least of 1, 2 and 5 times a power of ten that gives about the wanted number of ticks.
double NiceStep(double length) {
  const double raw = length / kWantedTicks;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

// Multiples of `step` inside the range.
std::vector<double> Multiples(const AxisRange& range, double step) {
  constexpr int kMost = 64;
  std::vector<double> values;
  const double first = std::ceil(range.least / step - 1e-9);
  for (int i = 0; i < kMost; ++i) {
    const double value = (first + i) * step;
    if (value > range.most + step * 1e-9) break;
    values.push_back(value == 0 ? 0.0 : value);  // no -0
  }
  return values;
}

std::string WithPrefix(double size, std::string_view unit, double* divisor) {
  struct Prefix {
    double factor;
    const char* name;
  };
  constexpr std::array<Prefix, 7> kPrefixes = {
      {{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}, {0, ""}}};
  for (const Prefix& prefix : kPrefixes) {
    if (size < prefix.factor) continue;
    *divisor = prefix.factor > 0 ? prefix.factor : 1;
    return prefix.name + std::string(unit);
  }
  return std::string(unit);
}

}  // namespace

ShownUnit ShownUnitFor(std::string_view ucum, double size) {
  ShownUnit unit;
  if (ucum == "Cel") return {.divisor = 1, .name = "°C"};
  if (ucum == "By") {
    unit.name = WithPrefix(size, "B", &unit.divisor);
  } else if (ucum == "By/s") {
    unit.name = WithPrefix(size, "B/s", &unit.divisor);
  } else if (ucum == "Hz" || ucum == "J") {
    unit.name = WithPrefix(size, ucum, &unit.divisor);
  } else if (ucum == "s") {
    unit = size < 1e-3  ? ShownUnit{.divisor = 1e-6, .name = "µs"}
           : size < 0.5 ? ShownUnit{.divisor = 1e-3, .name = "ms"}
                        : ShownUnit{.divisor = 1, .name = "s"};
  } else if (ucum == "%") {
    unit = {.divisor = 0.01, .name = "%"};
  } else if (ucum != "1") {
    // "{count}/s" is said as it is, without the braces of UCUM.
    for (const char c : ucum) {
      if (c != '{' && c != '}') unit.name += c;
    }
  }
  return unit;
}

std::vector<Tick> NumberTicks(const AxisRange& range, double divisor) {
  const AxisRange shown{.least = range.least / divisor, .most = range.most / divisor};
  const double step = NiceStep(shown.most - shown.least);
  const int digits = std::clamp(static_cast<int>(-std::floor(std::log10(step) + 1e-9)), 0, 9);
  std::vector<Tick> ticks;
  for (const double value : Multiples(shown, step)) {
    const bool wide = std::fabs(value) >= 1e7 || (step < 1e-6);
    ticks.push_back(
        {.value = value * divisor,
         .label = wide ? fmt::format("{:.6g}", value) : fmt::format("{:.{}f}", value, digits)});
  }
  return ticks;
}

std::vector<Tick> WholeTicks(const AxisRange& range) {
  std::vector<Tick> ticks;
  const double step = std::max(1.0, NiceStep(range.most - range.least));
  for (const double value : Multiples(range, step)) {
    ticks.push_back({.value = value, .label = fmt::format("{:.0f}", value)});
  }
  return ticks;
}

std::vector<Tick> TimeTicks(const AxisRange& range, Language language) {
  struct Step {
    double seconds, unit_s;
    const char *en, *zh;
  };
  constexpr std::array<Step, 21> kSteps = {
      {{1, 1, "s", "秒"},          {2, 1, "s", "秒"},          {5, 1, "s", "秒"},
       {10, 1, "s", "秒"},         {20, 1, "s", "秒"},         {30, 1, "s", "秒"},
       {60, 60, "min", "分"},      {120, 60, "min", "分"},     {300, 60, "min", "分"},
       {600, 60, "min", "分"},     {900, 60, "min", "分"},     {1800, 60, "min", "分"},
       {3600, 3600, "h", "时"},    {7200, 3600, "h", "时"},    {10800, 3600, "h", "时"},
       {21600, 3600, "h", "时"},   {43200, 3600, "h", "时"},   {86400, 86400, "d", "天"},
       {172800, 86400, "d", "天"}, {604800, 86400, "d", "天"}, {2592000, 86400, "d", "天"}}};
  constexpr double kMostTicks = 7;
  const double length = range.most - range.least;
  std::vector<Tick> ticks;
  if (length < 5) {
    for (Tick& tick : NumberTicks(range, 1)) {
      tick.label += language == Language::kChinese ? " 秒" : " s";
      ticks.push_back(std::move(tick));
    }
    return ticks;
  }
  const Step* step = &kSteps.back();
  for (const Step& known : kSteps) {
    if (length / known.seconds > kMostTicks) continue;
    step = &known;
    break;
  }
  double seconds = step->seconds;
  while (length / seconds > kMostTicks) seconds *= 2;
  for (const double value : Multiples(range, seconds)) {
    const char* unit = language == Language::kChinese ? step->zh : step->en;
    ticks.push_back({.value = value, .label = fmt::format("{:g} {}", value / step->unit_s, unit)});
  }
  return ticks;
}

AxisRange RangeOf(double least, double most, bool from_zero) {
  constexpr double kRoom = 0.05;
  if (!std::isfinite(least) || !std::isfinite(most) || least > most) return {};
  // Half of the numbers' range, so that no difference overflows.
  constexpr double kMostSize = 8e307;
  least = std::clamp(least, -kMostSize, kMostSize);
  most = std::clamp(most, -kMostSize, kMostSize);
  if (from_zero && least >= 0) least = 0;
  double room = kRoom * (most - least);
  const double size = std::max(std::fabs(least), std::fabs(most));
  // Ticks must be told apart by doubles.
  if (!(room > size * 1e-9)) room = size > 0 ? size * kRoom : 1;
  return {.least = from_zero && least == 0 ? 0 : least - room, .most = most + room};
}

}  // namespace epochmeter::render
