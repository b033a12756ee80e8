// SPDX-License-Identifier: Apache-2.0
#include "render/units.h"

#include <fmt/format.h>

#include <cmath>

#include "base/clock.h"
#include "base/strings.h"

namespace epochmeter::render {

std::optional<std::string> Percent(std::optional<double> ratio) {
  if (!ratio || !std::isfinite(*ratio)) return {};
  const double percent = *ratio * 100;
  return fmt::format("{:.{}f} %", percent, percent > 0.05 && percent < 9.95 ? 1 : 0);
}

std::optional<std::string> Bytes(std::optional<double> bytes) {
  if (!bytes || !std::isfinite(*bytes)) return {};
  return base::FormatBytes(*bytes);
}

std::optional<std::string> Cores(std::optional<double> cores) {
  if (!cores || !std::isfinite(*cores)) return {};
  return fmt::format("{:.{}f}", *cores, *cores < 0.095 ? 2 : 1);
}

std::optional<std::string> Watts(std::optional<double> watts) {
  if (!watts || !std::isfinite(*watts)) return {};
  return fmt::format("{:.0f} W", *watts);
}

std::optional<std::string> Celsius(std::optional<double> degrees) {
  if (!degrees || !std::isfinite(*degrees)) return {};
  return fmt::format("{:.0f} °C", *degrees);
}

std::optional<std::string> Joules(std::optional<double> joules) {
  if (!joules || !std::isfinite(*joules)) return {};
  const double size = std::fabs(*joules);
  if (size < 999.5) return fmt::format("{:.3g} J", *joules);
  if (size < 999.5e3) return fmt::format("{:.3g} kJ", *joules / 1e3);
  return fmt::format("{:.3f} kWh", *joules / 3.6e6);
}

std::optional<std::string> Seconds(std::optional<double> seconds) {
  if (!seconds || !std::isfinite(*seconds)) return {};
  return base::FormatDuration(*seconds);
}

std::string GpuTime(double gpu_seconds) {
  if (gpu_seconds < 36) return fmt::format("{:.2g} GPU-s", gpu_seconds);
  const double hours = gpu_seconds / 3600;
  return fmt::format("{:.{}f} GPU-h", hours, hours < 0.0995 ? 3 : hours < 9.95 ? 2 : 1);
}

std::string Scalar(double value) { return fmt::format("{:.5g}", value); }

}  // namespace epochmeter::render
