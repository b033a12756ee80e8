// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/columns.h"

#include <algorithm>

#include "base/strings.h"

namespace epochmeter::ingest::log {
namespace {

char SeparatorOf(std::string_view text) {
  for (const char separator : {',', '|', '\t', ';'}) {
    if (std::count(text.begin(), text.end(), separator) >= 1) return separator;
  }
  return ' ';
}

struct Cell {
  std::string_view text;
  size_t at = 0;
};

std::vector<Cell> CellsOf(std::string_view text, char separator) {
  std::vector<Cell> cells;
  if (separator == '\0') {  // two spaces or more
    size_t at = 0;
    while (at < text.size()) {
      size_t end = text.find("  ", at);
      if (end == std::string_view::npos) end = text.size();
      const std::string_view cell = base::Trim(text.substr(at, end - at));
      if (!cell.empty()) cells.push_back({cell, static_cast<size_t>(cell.data() - text.data())});
      at = end + 2;
    }
    return cells;
  }
  if (separator == ' ') {
    for (const std::string_view word : base::SplitWhitespace(text)) {
      cells.push_back({word, static_cast<size_t>(word.data() - text.data())});
    }
    return cells;
  }
  for (const std::string_view part : base::Split(text, separator)) {
    const std::string_view trimmed = base::Trim(part);
    const bool edge = separator == '|' && trimmed.empty();
    if (!edge)
      cells.push_back({trimmed, static_cast<size_t>(part.data() - text.data()) +
                                    (part.find(trimmed.empty() ? "" : trimmed))});
  }
  return cells;
}

}  // namespace

Columns ReadColumns(std::string_view text) {
  Columns columns;
  // "#  step      rmse_trn": a comment that names the columns.
  const size_t first = text.find_first_not_of(" #%");
  if (!text.empty() && (text[0] == '#' || text[0] == '%') && first != std::string_view::npos) {
    text.remove_prefix(first);
  }
  columns.separator = SeparatorOf(text);
  std::vector<Cell> cells = CellsOf(text, columns.separator);
  if (columns.separator == ' ') {
    // "Train Loss   Remaining Time": names of several words.
    std::vector<Cell> wide = CellsOf(text, '\0');
    if (wide.size() >= 2 && wide.size() < cells.size()) cells = std::move(wide);
  }
  for (const Cell& cell : cells) {
    // spaCy's table.
    columns.names.emplace_back(cell.text == "E" ? "epoch" : cell.text == "#" ? "step" : cell.text);
  }
  columns.hash = 0x9E37'79B9'7F4A'7C15;
  for (const std::string& name : columns.names) {
    for (const char byte : name)
      columns.hash = (columns.hash ^ static_cast<unsigned char>(byte)) * 0x100'0000'01B3;
    columns.hash *= 0x100'0000'01B3;
  }
  return columns;
}

// The row is rewritten as "name: value" and planned as such, so that names mean the same
// everywhere; then the numbers are led back to their places in the row.
LinePlan MakeRowPlan(std::string_view text, const LinePrefix& prefix, const Skeleton& skeleton,
                     const Columns& columns) {
  // A time in the first cell looks like a logger's.
  size_t from = 0;
  std::vector<Cell> cells = CellsOf(text, columns.separator);
  if (cells.size() != columns.names.size() && prefix.message > 0 && prefix.message < text.size()) {
    from = prefix.message;
    cells = CellsOf(text.substr(from), columns.separator);
  }
  if (cells.size() < columns.names.size()) return {};
  if (columns.separator != ' ' && cells.size() != columns.names.size()) return {};
  std::string named;
  std::vector<size_t> origin;  // of each byte of `named` in `text`
  const auto add = [&](std::string_view piece, size_t at, bool moves) {
    for (size_t i = 0; i < piece.size(); ++i) {
      named += piece[i];
      origin.push_back(moves ? at + i : at);
    }
  };
  for (size_t i = 0; i < columns.names.size(); ++i) {
    std::string_view cell = cells[i].text;
    const size_t at = from + cells[i].at;
    if (i > 0) add(", ", at, false);
    add(columns.names[i], at, false);
    add(": ", at, false);
    add(cell, at, true);
  }
  // What follows the columns: a bar.
  if (columns.separator == ' ' && cells.size() > columns.names.size()) {
    const Cell& last = cells[columns.names.size() - 1];
    const size_t rest = from + last.at + last.text.size();
    add(text.substr(rest), rest, true);
  }
  Skeleton of_named;
  ReadSkeleton(named, &of_named);
  LinePlan plan = MakePlan(named, {}, of_named);
  const auto place = [&](uint16_t number, uint16_t* moved) {
    if (number >= of_named.numbers) return false;
    const size_t offset = origin[of_named.begin[number]];
    const auto* end = skeleton.begin.data() + skeleton.numbers;
    const auto* found = std::lower_bound(skeleton.begin.data(), end, static_cast<uint32_t>(offset));
    if (found == end || *found != offset) return false;
    *moved = static_cast<uint16_t>(found - skeleton.begin.data());
    return true;
  };
  for (FieldPlan& field : plan.fields) {
    if (field.form == FieldForm::kWord) continue;
    bool placed =
        place(field.number, &field.number) && place(field.last_number, &field.last_number);
    if (field.form == FieldForm::kPair)
      placed = placed && place(field.total_number, &field.total_number);
    // A stamp of its own kind, a word: what is no number of the row is not read.
    if (!placed) field.number = field.last_number = field.total_number = Skeleton::kMostNumbers;
  }
  plan.columns = plan.rows = false;
  return plan;
}

}  // namespace epochmeter::ingest::log
