// SPDX-License-Identifier: Apache-2.0
// Columns of numbers as the page's payload has them: whole numbers, as differences, which pack
// well.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace epochmeter::render {

// A JSON array of differences of whole numbers, the first from 0. One thread.
class DeltaArray {
 public:
  void Add(int64_t number);
  // A number that is absent: the next difference is from the number before it.
  void AddNull() { AddText("null"); }
  void AddText(std::string_view json);
  // Ends it.
  std::string Take();

 private:
  std::string text_ = "[";
  int64_t last_ = 0;
};

// Step in which values of a picture are kept: a ten-thousandth of their range or their middle by
// `middle_steps`, whichever is less, as 1, 2 or 5 times a power of ten (or as a multiple of
// `resolution`, never finer, where that is not 0). A single value is its own step. Nothing when no
// step fits them all into whole numbers that a browser knows. Values that are not finite don't
// count; without any others it is 1.
std::optional<double> StepFor(std::span<const double> values, double resolution,
                              double middle_steps);

}  // namespace epochmeter::render
