// SPDX-License-Identifier: Apache-2.0
// Numbers and durations as trainings print them. Independent of the locale. Pure; any thread.
#pragma once

#include <optional>
#include <string_view>

namespace epochmeter::ingest::log {

// The number that a text begins with, exactly as written: "-1.203115E+01", "nan", "-inf",
// "Infinity", "2,097,152" (groups of three digits). `size` is its bytes, 0 when there is none.
struct NumberScan {
  double number = 0;
  size_t size = 0;
};
NumberScan ScanNumber(std::string_view text);

// A text that is one number and perhaps its unit: "'0.7331'", "81ms", "tensor(0.123, device=..)".
struct NumberText {
  double number = 0;      // as written, with "13K" as 13000
  std::string_view unit;  // "ms", "GiB", "%"; empty when none is written
  bool rounded = false;   // written as "13K": no better than its digits
};
std::optional<NumberText> ReadNumberText(std::string_view text);
// The same, only the number.
std::optional<double> ParseNumberText(std::string_view text);

// Seconds of "0:00:49", "1 day, 16:33:54", "34:13:14", "05:57", "46s215ms", "242s", "2h13m",
// "1d 2h", "3-04:05:06". Nothing for "?", "--:--" and for a number without a unit.
std::optional<double> ParseDurationText(std::string_view text);

}  // namespace epochmeter::ingest::log
