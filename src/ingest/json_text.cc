// SPDX-License-Identifier: Apache-2.0
#include "ingest/json_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/strings.h"

namespace epochmeter::ingest {
namespace {

// simdjson's own depth limit is set out of reach, so that the order of faults is ours.
constexpr size_t kFirstCapacity = 8192;
constexpr size_t kParserDepth = 8193;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

size_t SkipDigits(std::string_view token, size_t at) {
  while (at < token.size() && IsDigit(token[at])) ++at;
  return at;
}

// RFC 8259 section 6. `*integer` tells whether it has neither fraction nor exponent.
bool IsJsonNumber(std::string_view token, bool* integer) {
  *integer = true;
  size_t at = !token.empty() && token[0] == '-' ? 1 : 0;
  const size_t first = at;
  at = SkipDigits(token, at);
  if (at == first || (token[first] == '0' && at > first + 1)) return false;
  if (at < token.size() && token[at] == '.') {
    *integer = false;
    const size_t fraction = ++at;
    at = SkipDigits(token, at);
    if (at == fraction) return false;
  }
  if (at < token.size() && (token[at] == 'e' || token[at] == 'E')) {
    *integer = false;
    ++at;
    if (at < token.size() && (token[at] == '+' || token[at] == '-')) ++at;
    const size_t exponent = at;
    at = SkipDigits(token, at);
    if (at == exponent) return false;
  }
  return at == token.size();
}

std::string_view NotFiniteText(std::string_view token) {
  const std::string word = base::ToLowerAscii(token);
  if (word == "nan" || word == "-nan" || word == "+nan") return "\"NaN\"";
  if (word == "inf" || word == "+inf" || word == "infinity") return "\"Infinity\"";
  if (word == "-inf" || word == "-infinity") return "\"-Infinity\"";
  return {};
}

// What to put in the place of a token that simdjson refuses for its value, not for its form.
std::string Replacement(std::string_view token, JsonDialect dialect) {
  if (dialect == JsonDialect::kPythonNumbers) {
    if (const auto text = NotFiniteText(token); !text.empty()) return std::string(text);
  }
  bool integer = false;
  if (!IsJsonNumber(token, &integer)) return std::string(token);
  double value = 0;
  const auto parsed = std::from_chars(token.data(), token.data() + token.size(), value);
  if (parsed.ec == std::errc::result_out_of_range) {
    const bool tiny = token.find("e-") != token.npos || token.find("E-") != token.npos;
    return std::string(tiny ? token : "false");
  }
  const bool fits = base::ParseInt(token).has_value() || base::ParseUint(token).has_value();
  return integer && !fits ? std::string(token) + ".0" : std::string(token);
}

bool IsTokenByte(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '-' ||
         c == '.';
}

// The position behind the string that starts at `at`; the end when it is torn.
size_t SkipString(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return std::min(at + 1, text.size());
}

std::string ReplaceNumbers(std::string_view text, JsonDialect dialect) {
  std::string out;
  out.reserve(text.size() + 64);
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (text[at] == '"') {
      end = SkipString(text, at);
      out.append(text.substr(at, end - at));
    } else if (IsTokenByte(text[at])) {
      while (end < text.size() && IsTokenByte(text[end])) ++end;
      out.append(Replacement(text.substr(at, end - at), dialect));
    } else {
      out.push_back(text[at]);
    }
    at = end;
  }
  return out;
}

// Depth of valid JSON.
int Depth(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '{' || c == '[') deepest = std::max(deepest, ++depth);
    if (c == '}' || c == ']') --depth;
    at = c == '"' ? SkipString(text, at) : at + 1;
  }
  return deepest;
}

bool DeeperThan(std::string_view text, int max_depth) {
  const auto opened =
      std::count(text.begin(), text.end(), '{') + std::count(text.begin(), text.end(), '[');
  return opened > max_depth && Depth(text) > max_depth;
}

// The value of the \uXXXX escape at `at`, or nothing.
std::optional<uint64_t> UnicodeEscape(std::string_view text, size_t at) {
  if (text.substr(at, 2) != "\\u" || text.size() < at + 6) return std::nullopt;
  return base::ParseUint(text.substr(at + 2, 4), 16);
}

// Surrogate halves without their partner, which simdjson 3.0 lets through in part. `text` is valid
// JSON otherwise, so that backslashes are only in strings.
bool HasLoneSurrogate(std::string_view text) {
  for (size_t at = text.find('\\'); at < text.size(); at = text.find('\\', at)) {
    const auto unit = UnicodeEscape(text, at);
    if (!unit) {
      at += 2;
      continue;
    }
    at += 6;
    if (*unit < 0xD800 || *unit > 0xDFFF) continue;
    const auto low = UnicodeEscape(text, at);
    if (*unit > 0xDBFF || !low || *low < 0xDC00 || *low > 0xDFFF) return true;
    at += 6;
  }
  return false;
}

}  // namespace

JsonParser::JsonParser(JsonDialect dialect, int max_depth)
    : dialect_(dialect), max_depth_(max_depth) {
  EPM_CHECK(parser_.allocate(kFirstCapacity, kParserDepth) == simdjson::SUCCESS)
      << "no memory for a JSON parser";
}

simdjson::error_code JsonParser::ParseBytes(std::string_view text, JsonElement* root) {
  padded_.resize(text.size() + simdjson::SIMDJSON_PADDING);
  std::copy(text.begin(), text.end(), padded_.begin());
  return parser_.parse(padded_.data(), text.size(), false).get(*root);
}

JsonFault JsonParser::Parse(std::string_view text, JsonObject* object) {
  if (!simdjson::validate_utf8(text.data(), text.size())) return JsonFault::kNotUtf8;
  if (base::StartsWith(text, "\xEF\xBB\xBF")) return JsonFault::kNotJson;
  JsonElement root;
  if (const auto error = ParseBytes(text, &root); error == simdjson::DEPTH_ERROR) {
    return JsonFault::kTooDeep;
  } else if (error != simdjson::SUCCESS) {
    const std::string replaced = ReplaceNumbers(text, dialect_);
    if (replaced == text || ParseBytes(replaced, &root) != simdjson::SUCCESS) {
      return JsonFault::kNotJson;
    }
  }
  if (HasLoneSurrogate(text)) return JsonFault::kNotJson;
  if (root.get(*object) != simdjson::SUCCESS) return JsonFault::kNotObject;
  return DeeperThan(text, max_depth_) ? JsonFault::kTooDeep : JsonFault::kNone;
}

std::optional<int64_t> IntOf(JsonElement value) {
  // get(int64_t) would also convert; the type on the tape is what was written.
  if (value.type() != simdjson::dom::element_type::INT64) return std::nullopt;
  int64_t number = 0;
  if (value.get(number) != simdjson::SUCCESS) return std::nullopt;
  return number;
}

std::optional<double> NumberOf(JsonElement value) {
  double number = 0;
  if (!value.is_number() || value.get(number) != simdjson::SUCCESS) return std::nullopt;
  if (!std::isfinite(number)) return std::nullopt;
  return number;
}

std::optional<double> RealOf(JsonElement value) {
  if (const auto number = NumberOf(value)) return number;
  const auto text = TextOf(value);
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

std::optional<std::string_view> TextOf(JsonElement value) {
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) return std::nullopt;
  return text;
}

std::optional<bool> BoolOf(JsonElement value) {
  bool flag = false;
  if (value.get(flag) != simdjson::SUCCESS) return std::nullopt;
  return flag;
}

std::optional<JsonElement> Find(JsonObject object, std::string_view key) {
  std::optional<JsonElement> found;
  for (const auto field : object) {
    if (field.key == key) found = field.value;
  }
  if (found && found->is_null()) return std::nullopt;
  return found;
}

std::optional<int64_t> IntField(JsonObject object, std::string_view key) {
  const auto value = Find(object, key);
  return value ? IntOf(*value) : std::nullopt;
}

std::optional<double> RealField(JsonObject object, std::string_view key) {
  const auto value = Find(object, key);
  return value ? RealOf(*value) : std::nullopt;
}

std::optional<std::string_view> TextField(JsonObject object, std::string_view key) {
  const auto value = Find(object, key);
  return value ? TextOf(*value) : std::nullopt;
}

std::optional<JsonObject> ObjectField(JsonObject object, std::string_view key) {
  JsonObject found;
  const auto value = Find(object, key);
  if (!value || value->get(found) != simdjson::SUCCESS) return std::nullopt;
  return found;
}

std::optional<simdjson::dom::array> ArrayField(JsonObject object, std::string_view key) {
  simdjson::dom::array found;
  const auto value = Find(object, key);
  if (!value || value->get(found) != simdjson::SUCCESS) return std::nullopt;
  return found;
}

}  // namespace epochmeter::ingest
