// SPDX-License-Identifier: Apache-2.0
// The course of a figure in one line of text.
#pragma once

#include <string>
#include <vector>

namespace epochmeter::render {

// At most `width` columns, from the lowest to the highest value; values are joined into means where
// they are more. What is not a finite number is an "x". Empty without two finite values.
std::string Sparkline(const std::vector<double>& values, size_t width, bool ascii);

}  // namespace epochmeter::render
