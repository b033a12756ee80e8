// SPDX-License-Identifier: Apache-2.0
// Line charts as SVG, by hand: one or more panels over a shared axis. Colours are those of Okabe
// and Ito, which people with any colour vision tell apart, with dashes from the fifth line on.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "render/axis.h"

namespace epochmeter::render {

// `y` that is not finite breaks the line. Columns of equal length, x not falling.
struct ChartLine {
  std::string name;
  std::vector<double> x, y;
};

struct ChartPanel {
  std::string title;
  std::string ucum;  // of the values
  bool from_zero = true;
  std::optional<double> ceiling;  // the axis holds it, when above 0
  std::string ceiling_name;       // of the line that is drawn there; empty: none
  std::vector<ChartLine> lines;
  std::vector<double> not_finite;  // x where a value is NaN or infinite: marked at the top
};

struct Picture {
  std::string title, subtitle;
  std::string x_title;
  AxisRange x;
  std::vector<Tick> x_ticks;
  std::vector<double> epochs;  // x where each begins, and the last ends; light lines in each panel
  std::vector<ChartPanel> panels;
  std::string empty_text;       // in a panel without values
  std::string not_finite_text;  // beside the first mark of one
  bool dark = false;
};

// Four panels stand in two columns, others below each other. Lines of one name have one colour in
// all panels, and one entry in the legend.
std::string DrawPicture(const Picture& picture);

}  // namespace epochmeter::render
