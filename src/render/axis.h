// SPDX-License-Identifier: Apache-2.0
// Round numbers and units along the axes of pictures. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "render/phrases.h"

namespace epochmeter::render {

struct Tick {
  double value = 0;
  std::string label;
};

struct AxisRange {
  double least = 0, most = 1;
  double Part(double value) const { return (value - least) / (most - least); }
};

// How values of a UCUM unit are shown: divided by `divisor`, as `name` ("GB", "%", "W").
struct ShownUnit {
  double divisor = 1;
  std::string name;
};
ShownUnit ShownUnitFor(std::string_view ucum, double size);

// Four to eight round values inside the range, with as many digits as they need.
std::vector<Tick> NumberTicks(const AxisRange& range, double divisor);
// The same for whole numbers: epochs and steps.
std::vector<Tick> WholeTicks(const AxisRange& range);
// Of seconds since the begin: "30 s", "5 min", "2 h", "3 d", at round times.
std::vector<Tick> TimeTicks(const AxisRange& range, Language language);

// A range that holds both values with some room; never empty, also for values that are equal or
// not finite. From 0 when `from_zero` and nothing is below.
AxisRange RangeOf(double least, double most, bool from_zero);

}  // namespace epochmeter::render
