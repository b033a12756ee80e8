// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/strings.h"

namespace epochmeter::base {

std::string JsonNumber(double value) {
  if (!std::isfinite(value)) return "null";
  // fmt's default is the shortest text that round-trips; whole numbers print without ".0".
  return fmt::format("{}", value == 0 ? 0.0 : value);
}

std::string JsonQuote(std::string_view text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
  });
  if (plain) {
    std::string quoted;
    quoted.reserve(text.size() + 2);
    ((quoted += '"') += text) += '"';
    return quoted;
  }
  const std::string clean = ToValidUtf8(text);
  std::string out = "\"";
  for (const char c : clean) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
        } else {
          out += c;
        }
    }
  }
  return out += '"';
}

void JsonWriter::NewLine() {
  if (indent_ == 0) return;
  out_ += '\n';
  out_.append(has_items_.size() * static_cast<size_t>(indent_), ' ');
}

void JsonWriter::Separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (has_items_.empty()) return;
  if (has_items_.back()) out_ += ',';
  has_items_.back() = true;
  NewLine();
}

JsonWriter& JsonWriter::Open(char bracket) {
  Separate();
  out_ += bracket;
  has_items_.push_back(false);
  return *this;
}

JsonWriter& JsonWriter::Close(char bracket) {
  EPM_CHECK(!has_items_.empty() && !after_key_);
  const bool had_items = has_items_.back();
  has_items_.pop_back();
  if (had_items) NewLine();
  out_ += bracket;
  return *this;
}

JsonWriter& JsonWriter::Key(std::string_view key) {
  EPM_CHECK(!after_key_ && !has_items_.empty());
  Separate();
  out_ += JsonQuote(key);
  out_ += indent_ > 0 ? ": " : ":";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::Raw(std::string_view json) {
  Separate();
  out_ += json;
  return *this;
}

JsonWriter& JsonWriter::String(std::string_view value) { return Raw(JsonQuote(value)); }
JsonWriter& JsonWriter::Int(int64_t value) { return Raw(fmt::format("{}", value)); }
JsonWriter& JsonWriter::Uint(uint64_t value) { return Raw(fmt::format("{}", value)); }
JsonWriter& JsonWriter::Double(double value) { return Raw(JsonNumber(value)); }
JsonWriter& JsonWriter::Bool(bool value) { return Raw(value ? "true" : "false"); }
JsonWriter& JsonWriter::Null() { return Raw("null"); }

}  // namespace epochmeter::base
