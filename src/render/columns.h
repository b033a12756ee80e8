// SPDX-License-Identifier: Apache-2.0
// Text in columns: widths are counted as a terminal shows them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace epochmeter::render {

// Columns that a UTF-8 text takes: 2 for CJK and full-width characters and emoji, 0 for combining
// marks and controls, else 1. An invalid byte counts 1.
size_t DisplayWidth(std::string_view text);
// Cut to `width` columns, with an ellipsis ("..." in ASCII) where something is missing.
std::string CutTo(std::string_view text, size_t width, bool ascii);
// Broken at spaces, and between full-width characters, into lines of at most `width` columns;
// `first` and `rest` stand before the first and each further line. A word that is too long is
// broken anywhere.
std::vector<std::string> Wrap(std::string_view text, size_t width, std::string_view first,
                              std::string_view rest);
// Text with control characters made visible as '?', so that foreign text can't steer a terminal.
std::string Plain(std::string_view text);
// Plain ASCII: other characters become '?'.
std::string ToAscii(std::string_view text);

struct TableColumn {
  std::string title;
  bool left = false;  // else aligned to the right
  std::vector<std::optional<std::string>> cells;
};

// Lines without line ends, header first. A column whose cells are all unknown is left out; an
// unknown cell elsewhere is "-". Titles and cells are made plain. Rows are as many as the longest
// column has cells.
std::vector<std::string> LayOut(const std::vector<TableColumn>& columns, std::string_view indent);

}  // namespace epochmeter::render
