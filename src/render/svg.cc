// SPDX-License-Identifier: Apache-2.0
#include "render/svg.h"

#include <fmt/format.h>

#include <cmath>

#include "base/check.h"
#include "base/strings.h"

namespace epochmeter::render {

std::string XmlText(std::string_view text) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  const std::string clean = base::ToValidUtf8(text);
  std::string out;
  out.reserve(clean.size());
  for (size_t i = 0; i < clean.size(); ++i) {
    const char c = clean[i];
    const bool noncharacter = c == '\xEF' && clean.compare(i + 1, 1, "\xBF") == 0 &&
                              i + 2 < clean.size() && (clean[i + 2] & 0xFE) == 0xBE;
    if (noncharacter) {
      out += kReplacement;
      i += 2;
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += ' ';
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += kReplacement;
    } else {
      out += c;
    }
  }
  return out;
}

std::string Coordinate(double value) {
  if (!std::isfinite(value)) return "0";
  const double rounded = std::round(value * 100) / 100;
  return fmt::format("{}", rounded == 0 ? 0.0 : rounded);
}

void SvgWriter::Begin(std::string_view tag, const Attributes& attributes) {
  text_.append("<").append(tag);
  for (const auto& [name, value] : attributes) {
    text_.append(" ").append(name).append("=\"").append(XmlText(value)).append("\"");
  }
}

SvgWriter& SvgWriter::Open(std::string_view tag, const Attributes& attributes) {
  Begin(tag, attributes);
  text_ += ">\n";
  open_.emplace_back(tag);
  return *this;
}

SvgWriter& SvgWriter::Empty(std::string_view tag, const Attributes& attributes) {
  Begin(tag, attributes);
  text_ += "/>\n";
  return *this;
}

SvgWriter& SvgWriter::Leaf(std::string_view tag, const Attributes& attributes,
                           std::string_view text) {
  Begin(tag, attributes);
  text_.append(">").append(XmlText(text)).append("</").append(tag).append(">\n");
  return *this;
}

SvgWriter& SvgWriter::Close() {
  EPM_CHECK(!open_.empty());
  text_.append("</").append(open_.back()).append(">\n");
  open_.pop_back();
  return *this;
}

std::string SvgWriter::Take() {
  EPM_CHECK(open_.empty()) << open_.back();
  return std::move(text_);
}

}  // namespace epochmeter::render
