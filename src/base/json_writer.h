// SPDX-License-Identifier: Apache-2.0
// Writes JSON text. Commas and quoting are its business; nesting is checked (EPM_CHECK).
// Doubles are written shortest-round-trip; not finite or absent values become null, never 0.
// Invalid UTF-8 in strings is replaced by U+FFFD, so that the output always parses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace epochmeter::base {

class JsonWriter {
 public:
  // `indent` > 0 pretty-prints with so many spaces a level; 0 is one line.
  explicit JsonWriter(int indent = 0) : indent_(indent) {}

  JsonWriter& BeginObject() { return Open('{'); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& BeginArray() { return Open('['); }
  JsonWriter& EndArray() { return Close(']'); }
  JsonWriter& Key(std::string_view key);

  JsonWriter& String(std::string_view value);
  JsonWriter& Int(int64_t value);
  JsonWriter& Uint(uint64_t value);
  JsonWriter& Double(double value);
  JsonWriter& Bool(bool value);
  JsonWriter& Null();
  // Text that is JSON already.
  JsonWriter& Raw(std::string_view json);

  // Key and value in one call; an empty optional is null.
  JsonWriter& Field(std::string_view key, std::string_view value) { return Key(key).String(value); }
  JsonWriter& Field(std::string_view key, const char* value) { return Key(key).String(value); }
  JsonWriter& Field(std::string_view key, int value) { return Key(key).Int(value); }
  JsonWriter& Field(std::string_view key, int64_t value) { return Key(key).Int(value); }
  JsonWriter& Field(std::string_view key, uint64_t value) { return Key(key).Uint(value); }
  JsonWriter& Field(std::string_view key, double value) { return Key(key).Double(value); }
  JsonWriter& Field(std::string_view key, bool value) { return Key(key).Bool(value); }
  template <typename T>
  JsonWriter& Field(std::string_view key, const std::optional<T>& value) {
    return value ? Field(key, *value) : Key(key).Null();
  }

  const std::string& text() const { return out_; }
  std::string Take() { return std::move(out_); }

 private:
  JsonWriter& Open(char bracket);
  JsonWriter& Close(char bracket);
  void Separate();
  void NewLine();

  std::string out_;
  std::vector<bool> has_items_;
  bool after_key_ = false;
  int indent_ = 0;
};

// `text` as a quoted JSON string.
std::string JsonQuote(std::string_view text);
// Shortest text that reads back as the same double; "null" when not finite.
std::string JsonNumber(double value);

}  // namespace epochmeter::base
