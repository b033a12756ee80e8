// SPDX-License-Identifier: Apache-2.0
// Lines of text for a terminal, with colour where it is wanted. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/redact.h"
#include "model/message.h"
#include "model/report.h"
#include "render/text.h"

namespace epochmeter::render {

enum class Tint : uint8_t { kNone, kBold, kDim, kRed, kYellow, kGreen, kCyan };

// The sentence in the language; in English where it was not said in the other.
std::string_view Said(const model::Message& message, Language language);
// The same of a text whose Chinese form may be empty.
std::string_view Said(std::string_view en, std::string_view zh, Language language);

class Page {
 public:
  explicit Page(const TextOptions& options);

  const TextOptions& options() const { return options_; }
  size_t width() const { return options_.width; }
  std::string_view Word(Phrase phrase) const { return Text(phrase, options_.language); }
  std::string_view Said(const model::Message& message) const {
    return render::Said(message, options_.language);
  }

  // An empty line and the title, bold.
  void Title(std::string_view title);
  void Line(std::string_view line);
  void Lines(const std::vector<std::string>& lines);
  // Foreign text, without what the options have taken out, made plain and wrapped at the width.
  void Paragraph(std::string_view text, std::string_view first, std::string_view rest,
                 Tint tint = Tint::kNone);
  // Items of a list, wrapped at the width; those beyond the most are counted, and `hint` says where
  // they are.
  void Items(const std::vector<std::string>& items, size_t most, std::string_view hint = {});
  // Foreign text for Line: without what the options have taken out, and plain.
  std::string Shown(std::string_view text);
  // The text in that colour; as it is where no colour is wanted.
  std::string Tinted(std::string_view text, Tint tint) const;
  size_t lines() const { return lines_; }

  std::string Take();

 private:
  TextOptions options_;
  base::Redactor redactor_;
  std::string text_;
  size_t lines_ = 0;
};

// How a severity is shown: red, yellow, cyan.
Tint SeverityTint(model::Severity severity);

}  // namespace epochmeter::render
