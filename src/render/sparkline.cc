// SPDX-License-Identifier: Apache-2.0
#include "render/sparkline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

namespace epochmeter::render {
namespace {

constexpr std::array<std::string_view, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<std::string_view, 8> kAscii = {"_", ".", ",", "-", "~", "=", "+", "#"};

// A part with one number that is not finite is not finite: that is what one looks for.
std::vector<double> Joined(const std::vector<double>& values, size_t width) {
  const size_t count = std::min(values.size(), width);
  std::vector<double> means;
  for (size_t i = 0; i < count; ++i) {
    const size_t begin = i * values.size() / count;
    const size_t end = std::max(begin + 1, (i + 1) * values.size() / count);
    double sum = 0;
    for (size_t at = begin; at < end; ++at) sum += values[at];
    means.push_back(sum / static_cast<double>(end - begin));
  }
  return means;
}

}  // namespace

std::string Sparkline(const std::vector<double>& values, size_t width, bool ascii) {
  const std::vector<double> means = Joined(values, width);
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  size_t finite = 0;
  for (const double mean : means) {
    if (!std::isfinite(mean)) continue;
    low = std::min(low, mean);
    high = std::max(high, mean);
    ++finite;
  }
  if (finite < 2) return {};
  std::string line;
  for (const double mean : means) {
    if (!std::isfinite(mean)) {
      line += 'x';
      continue;
    }
    const double part = high > low ? (mean - low) / (high - low) : 0;
    const auto step = std::min<size_t>(static_cast<size_t>(part * 8), 7);
    line += (ascii ? kAscii : kBlocks)[step];
  }
  return line;
}

}  // namespace epochmeter::render
