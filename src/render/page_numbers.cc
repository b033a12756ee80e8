// SPDX-License-Identifier: Apache-2.0
#include "render/page_numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

namespace epochmeter::render {
namespace {

constexpr double kRangeSteps = 1e4;
constexpr double kMostWhole = 9e15;  // below 2^53

// The largest of 1, 2 and 5 times a power of ten that is not above `step`.
double NiceBelow(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (const double factor : {5.0, 2.0}) {
    if (factor * power <= step * (1 + 1e-9)) return factor * power;
  }
  return power;
}

// Enough of them to know the middle.
double MiddleSize(std::span<const double> values) {
  std::vector<double> sizes;
  const size_t stride = values.size() / 512 + 1;
  for (size_t i = 0; i < values.size(); i += stride) {
    if (std::isfinite(values[i]) && values[i] != 0) sizes.push_back(std::fabs(values[i]));
  }
  if (sizes.empty()) return 0;
  const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  return *middle;
}

}  // namespace

void DeltaArray::Add(int64_t number) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, number - last_).ptr;
  AddText({digits, static_cast<size_t>(end - digits)});
  last_ = number;
}

void DeltaArray::AddText(std::string_view json) {
  if (text_.size() > 1) text_ += ',';
  text_ += json;
}

std::string DeltaArray::Take() {
  text_ += ']';
  return std::move(text_);
}

std::optional<double> StepFor(std::span<const double> values, double resolution,
                              double middle_steps) {
  double least = 0, most = 0, size = 0;
  bool any = false;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    least = any ? std::min(least, value) : value;
    most = any ? std::max(most, value) : value;
    size = std::max(size, std::fabs(value));
    any = true;
  }
  if (size == 0) return 1;
  if (most == least) return size;
  double wanted = (most / kRangeSteps) - (least / kRangeSteps);
  if (const double middle = MiddleSize(values); middle > 0) {
    wanted = std::min(wanted, middle / middle_steps);
  }
  double step = NiceBelow(wanted);
  if (resolution > 0) {
    step = wanted > resolution ? resolution * NiceBelow(wanted / resolution) : resolution;
  }
  if (!(step > 0) || !std::isfinite(step) || !(size / step < kMostWhole)) return {};
  return step;
}

}  // namespace epochmeter::render
