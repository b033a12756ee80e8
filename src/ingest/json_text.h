// SPDX-License-Identifier: Apache-2.0
// One JSON object at a time through simdjson, with the answers that the formats here need: why a
// text is refused, and typed reads without conversions. simdjson's error codes end here.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace epochmeter::ingest {

using JsonElement = simdjson::dom::element;
using JsonObject = simdjson::dom::object;

// In the order in which they are tested.
enum class JsonFault : uint8_t { kNone, kNotUtf8, kNotJson, kNotObject, kTooDeep };

// kPythonNumbers also takes the bare NaN, Infinity, nan and inf that Python's json and C's printf
// write; they read as the texts "NaN", "Infinity" and "-Infinity".
enum class JsonDialect : uint8_t { kStrict, kPythonNumbers };

// Reuses its buffers: nothing is allocated for texts no longer than the longest one before.
// One thread.
class JsonParser {
 public:
  // Objects and arrays may nest `max_depth` deep, the outer object being 1.
  explicit JsonParser(JsonDialect dialect, int max_depth = 16);

  // On kNone, `object` and all texts read from it are good until the next Parse. An integer beyond
  // 64 bits reads as a double, a number beyond a double as `false`: a wrong type everywhere.
  JsonFault Parse(std::string_view text, JsonObject* object);

 private:
  simdjson::error_code ParseBytes(std::string_view text, JsonElement* root);

  JsonDialect dialect_;
  int max_depth_;
  simdjson::dom::parser parser_;
  std::string padded_;
};

// Nothing when the value is of another type. An integer is one written without fraction or exponent
// that fits int64.
std::optional<int64_t> IntOf(JsonElement value);
std::optional<double> NumberOf(JsonElement value);  // finite
std::optional<double> RealOf(JsonElement value);    // also "NaN", "Infinity", "-Infinity"
std::optional<std::string_view> TextOf(JsonElement value);
std::optional<bool> BoolOf(JsonElement value);

// The last value of `key`; nothing when it is absent or null.
std::optional<JsonElement> Find(JsonObject object, std::string_view key);
std::optional<int64_t> IntField(JsonObject object, std::string_view key);
std::optional<double> RealField(JsonObject object, std::string_view key);
std::optional<std::string_view> TextField(JsonObject object, std::string_view key);
std::optional<JsonObject> ObjectField(JsonObject object, std::string_view key);
std::optional<simdjson::dom::array> ArrayField(JsonObject object, std::string_view key);

}  // namespace epochmeter::ingest
