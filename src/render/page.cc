// SPDX-License-Identifier: Apache-2.0
#include "render/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "render/columns.h"

namespace epochmeter::render {
namespace {

// Typographic signs that ASCII has words for; the rest becomes '?'.
std::string AsciiPage(std::string page) {
  constexpr std::pair<std::string_view, std::string_view> kSigns[] = {
      {"·", "-"}, {"…", "..."}, {"°C", "C"}, {"×", "x"}, {"–", "-"}, {"→", "->"}, {"≥", ">="}};
  for (const auto& [sign, word] : kSigns) {
    for (size_t at = page.find(sign); at != std::string::npos; at = page.find(sign, at)) {
      page.replace(at, sign.size(), word);
      at += word.size();
    }
  }
  return ToAscii(page);
}

// SGR parameters, in the order of Tint.
constexpr std::array<std::string_view, 7> kSgr = {"", "1", "2", "1;31", "1;33", "1;32", "1;36"};

}  // namespace

std::string_view Said(const model::Message& message, Language language) {
  return Said(message.en, message.zh, language);
}

std::string_view Said(std::string_view en, std::string_view zh, Language language) {
  return language == Language::kChinese && !zh.empty() ? zh : en;
}

Page::Page(const TextOptions& options) : options_(options) {
  // The other languages have no ASCII form.
  if (options_.ascii) options_.language = Language::kEnglish;
}

void Page::Title(std::string_view title) {
  Line("");
  Line(Tinted(title, Tint::kBold));
}

void Page::Line(std::string_view line) {
  text_ += line;
  text_ += '\n';
  ++lines_;
}

void Page::Lines(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) Line(line);
}

void Page::Paragraph(std::string_view text, std::string_view first, std::string_view rest,
                     Tint tint) {
  for (const std::string& line : Wrap(Shown(text), width(), first, rest)) Line(Tinted(line, tint));
}

std::string Page::Shown(std::string_view text) {
  return Plain(options_.redact ? redactor_.Text(text) : text);
}

void Page::Items(const std::vector<std::string>& items, size_t most, std::string_view hint) {
  for (size_t i = 0; i < std::min(items.size(), most); ++i) Paragraph(items[i], "  ", "    ");
  if (items.size() <= most) return;
  const std::string where = hint.empty() ? std::string() : fmt::format(" ({})", hint);
  Line(fmt::format("  {} {} {}{}", Word(Phrase::kAnd), items.size() - most, Word(Phrase::kMore),
                   where));
}

std::string Page::Tinted(std::string_view text, Tint tint) const {
  if (!options_.color || tint == Tint::kNone || text.empty()) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", kSgr[static_cast<size_t>(tint)], text);
}

std::string Page::Take() { return options_.ascii ? AsciiPage(std::move(text_)) : std::move(text_); }

Tint SeverityTint(model::Severity severity) {
  switch (severity) {
    case model::Severity::kCritical:
      return Tint::kRed;
    case model::Severity::kWarning:
      return Tint::kYellow;
    case model::Severity::kInfo:
      return Tint::kCyan;
    case model::Severity::kNotApplicable:
      return Tint::kDim;
  }
  return Tint::kNone;
}

}  // namespace epochmeter::render
