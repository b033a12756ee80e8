// SPDX-License-Identifier: Apache-2.0
// SVG text that is valid XML whatever the names in it hold. One thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace epochmeter::render {

// For an XML 1.0 text or attribute: markup is escaped; bytes that are no UTF-8 and characters that
// XML can't hold become U+FFFD, line ends and tabs a space.
std::string XmlText(std::string_view text);

// A coordinate with at most two digits behind the point: "12.5". Not finite: "0".
std::string Coordinate(double value);

class SvgWriter {
 public:
  using Attributes = std::vector<std::pair<std::string_view, std::string>>;

  // Values are escaped; names are ours.
  SvgWriter& Open(std::string_view tag, const Attributes& attributes = {});
  SvgWriter& Empty(std::string_view tag, const Attributes& attributes);
  SvgWriter& Leaf(std::string_view tag, const Attributes& attributes, std::string_view text);
  SvgWriter& Close();
  // All that was opened must be closed.
  std::string Take();

 private:
  void Begin(std::string_view tag, const Attributes& attributes);
  std::string text_;
  std::vector<std::string> open_;
};

}  // namespace epochmeter::render
