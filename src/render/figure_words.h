// SPDX-License-Identifier: Apache-2.0
// Figures of evidence, whose names hold their units, as people read them.
#pragma once

#include <string>
#include <string_view>

#include "render/phrases.h"

namespace epochmeter::render {

// A figure named with its unit, for people: ("p50_s", 0.02) is {"p50", "20 ms"}, ("wait_ratio",
// 0.38) {"wait", "38 %"}.
struct FigureWords {
  std::string name, value;
};
FigureWords WordsOf(std::string_view name, double value);

// Both: "wait 38 %". A name that the language has no word for stays as it is.
std::string NamedFigure(std::string_view name, double value, Language language);

}  // namespace epochmeter::render
