// SPDX-License-Identifier: Apache-2.0
#include "render/columns.h"

#include <utility>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/strings.h"

namespace epochmeter::render {
namespace {

constexpr std::string_view kUnknownCell = "-";
constexpr std::string_view kGap = "  ";

struct Glyph {
  char32_t code;
  size_t bytes;
};

// The first character of a text that is not empty; an invalid byte stands for itself.
Glyph FirstGlyph(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t bytes = lead < 0x80 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
  if (bytes == 1 || bytes > text.size()) return {.code = lead, .bytes = 1};
  char32_t code = lead & (0x7FU >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0U) != 0x80U) return {.code = lead, .bytes = 1};
    code = (code << 6U) | (next & 0x3FU);
  }
  return {.code = code, .bytes = bytes};
}

struct CodeRange {
  char32_t first, last;
};
// East Asian Wide and Fullwidth blocks and emoji (Unicode EastAsianWidth.txt, joined coarsely).
constexpr std::array<CodeRange, 9> kWide = {{{0x1100, 0x115F},
                                             {0x2E80, 0x303E},
                                             {0x3041, 0xA4CF},
                                             {0xAC00, 0xD7A3},
                                             {0xF900, 0xFAFF},
                                             {0xFE30, 0xFE6F},
                                             {0xFF00, 0xFF60},
                                             {0xFFE0, 0xFFE6},
                                             {0x1F300, 0x3FFFD}}};
constexpr std::array<CodeRange, 5> kZero = {
    {{0x0000, 0x001F}, {0x007F, 0x009F}, {0x0300, 0x036F}, {0x200B, 0x200F}, {0xFE00, 0xFE0F}}};

template <size_t N>
bool IsIn(const std::array<CodeRange, N>& ranges, char32_t code) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const CodeRange& range) {
    return range.first <= code && code <= range.last;
  });
}

size_t GlyphWidth(const Glyph& glyph) {
  if (glyph.bytes == 1 && glyph.code >= 0x80) return 1;
  if (IsIn(kZero, glyph.code)) return 0;
  return IsIn(kWide, glyph.code) ? 2 : 1;
}

// A part of a text that is not broken unless it is wider than a line.
struct Piece {
  std::string_view text;
  bool after_space = false;
};

// Full-width signs that no line begins with.
bool ClosesText(char32_t code) {
  constexpr std::u32string_view kClosing =
      U"\u3001\u3002\u300B\u300D\u300F\u3011\uFF01\uFF09"
      U"\uFF0C\uFF1A\uFF1B\uFF1F\u201D\u2019";
  return kClosing.find(code) != std::u32string_view::npos;
}
// And those that no line ends with.
bool OpensText(char32_t code) {
  constexpr std::u32string_view kOpening = U"\u300A\u300C\u300E\u3010\uFF08\u201C\u2018";
  return kOpening.find(code) != std::u32string_view::npos;
}

// Words between spaces; text of full-width characters may be broken between any two of them.
std::vector<Piece> PiecesOf(std::string_view text) {
  std::vector<Piece> pieces;
  for (std::string_view word : base::SplitWhitespace(text)) {
    bool after_space = true;
    size_t end = 0;  // of the piece that begins with the word
    Glyph last{.code = 0, .bytes = 0};
    for (std::string_view left = word; !left.empty(); left.remove_prefix(last.bytes)) {
      const Glyph next = FirstGlyph(left);
      const bool wide = GlyphWidth(last) == 2 || GlyphWidth(next) == 2;
      if (end > 0 && wide && !ClosesText(next.code) && !OpensText(last.code)) {
        pieces.push_back({.text = word.substr(0, end), .after_space = after_space});
        word.remove_prefix(end);
        after_space = false;
        end = 0;
      }
      last = next;
      end += next.bytes;
    }
    pieces.push_back({.text = word, .after_space = after_space});
  }
  return pieces;
}

bool IsEmpty(const TableColumn& column) {
  return std::none_of(column.cells.begin(), column.cells.end(),
                      [](const auto& cell) { return cell.has_value(); });
}

// Row 0 is the title. Names out of a file stand in tables too.
std::string RowText(const TableColumn& column, size_t row) {
  if (row == 0) return Plain(column.title);
  const bool known = row <= column.cells.size() && column.cells[row - 1];
  return known ? Plain(*column.cells[row - 1]) : std::string(kUnknownCell);
}

void AppendPadded(std::string_view text, size_t width, bool left, std::string* line) {
  const std::string pad(width - std::min(width, DisplayWidth(text)), ' ');
  if (!left) *line += pad;
  *line += text;
  if (left) *line += pad;
}

std::string TrimRight(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

size_t DisplayWidth(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) {
    const Glyph glyph = FirstGlyph(text);
    width += GlyphWidth(glyph);
    text.remove_prefix(glyph.bytes);
  }
  return width;
}

std::string CutTo(std::string_view text, size_t width, bool ascii) {
  if (DisplayWidth(text) <= width) return std::string(text);
  const std::string_view mark = ascii ? "..." : "…";
  const size_t mark_width = DisplayWidth(mark);
  if (width <= mark_width) return std::string(width, '.');
  std::string cut;
  size_t used = mark_width;
  while (!text.empty()) {
    const Glyph glyph = FirstGlyph(text);
    used += GlyphWidth(glyph);
    if (used > width) break;
    cut += text.substr(0, glyph.bytes);
    text.remove_prefix(glyph.bytes);
  }
  return cut += mark;
}

std::vector<std::string> Wrap(std::string_view text, size_t width, std::string_view first,
                              std::string_view rest) {
  std::vector<std::string> lines;
  std::string line(first);
  size_t used = DisplayWidth(first);
  bool empty = true;  // nothing on this line but what stands before it
  const auto end_line = [&] {
    lines.push_back(TrimRight(std::exchange(line, std::string(rest))));
    used = DisplayWidth(rest);
    empty = true;
  };
  for (const Piece& piece : PiecesOf(text)) {
    const size_t space = piece.after_space ? 1 : 0;
    if (!empty && used + space + DisplayWidth(piece.text) > width) end_line();
    if (!empty && piece.after_space) {
      line += ' ';
      ++used;
    }
    for (std::string_view word = piece.text; !word.empty();) {
      const Glyph glyph = FirstGlyph(word);
      if (!empty && used + GlyphWidth(glyph) > width) end_line();
      line += word.substr(0, glyph.bytes);
      used += GlyphWidth(glyph);
      empty = false;
      word.remove_prefix(glyph.bytes);
    }
  }
  if (!empty) end_line();
  return lines;
}

std::string Plain(std::string_view text) {
  const std::string valid = base::ToValidUtf8(text);
  std::string plain;
  for (std::string_view rest = valid; !rest.empty();) {
    const Glyph glyph = FirstGlyph(rest);
    const bool control = glyph.code < 0x20 || (glyph.code >= 0x7F && glyph.code <= 0x9F);
    plain += control ? std::string_view("?") : rest.substr(0, glyph.bytes);
    rest.remove_prefix(glyph.bytes);
  }
  return plain;
}

std::string ToAscii(std::string_view text) {
  std::string ascii;
  while (!text.empty()) {
    const Glyph glyph = FirstGlyph(text);
    ascii += glyph.code < 0x80 ? static_cast<char>(glyph.code) : '?';
    text.remove_prefix(glyph.bytes);
  }
  return ascii;
}

std::vector<std::string> LayOut(const std::vector<TableColumn>& columns, std::string_view indent) {
  size_t rows = 0;
  for (const TableColumn& column : columns) rows = std::max(rows, column.cells.size());
  std::vector<std::string> lines(rows + 1, std::string(indent));
  bool first = true;
  for (const TableColumn& column : columns) {
    if (IsEmpty(column)) continue;
    std::vector<std::string> texts;
    size_t width = 0;
    for (size_t row = 0; row <= rows; ++row) {
      texts.push_back(RowText(column, row));
      width = std::max(width, DisplayWidth(texts.back()));
    }
    for (size_t row = 0; row <= rows; ++row) {
      if (!first) lines[row] += kGap;
      AppendPadded(texts[row], width, column.left, &lines[row]);
    }
    first = false;
  }
  for (std::string& line : lines) line = TrimRight(std::move(line));
  return lines;
}

}  // namespace epochmeter::render
