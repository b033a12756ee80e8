// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/docker_line.h"

#include <cstdint>
#include <optional>

#include "base/strings.h"
#include "ingest/log/byte_scan.h"

namespace epochmeter::ingest::log {
namespace {

void AppendCode(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  if (code < 0x800) {
    out += static_cast<char>(0xc0 | (code >> 6));
  } else {
    if (code < 0x10000) {
      out += static_cast<char>(0xe0 | (code >> 12));
    } else {
      out += static_cast<char>(0xf0 | (code >> 18));
      out += static_cast<char>(0x80 | ((code >> 12) & 0x3f));
    }
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
  }
  out += static_cast<char>(0x80 | (code & 0x3f));
}

std::optional<uint32_t> Hex4(std::string_view text, size_t at) {
  if (at + 4 > text.size()) return std::nullopt;
  const std::optional<uint64_t> value = base::ParseUint(text.substr(at, 4), 16);
  if (!value) return std::nullopt;
  return static_cast<uint32_t>(*value);
}

// "\u001b" at `at`, also two for one character. Returns where it ends, 0 when it is none.
size_t Unicode(std::string_view text, size_t at, std::string& out) {
  const std::optional<uint32_t> first = Hex4(text, at + 2);
  if (!first) return 0;
  if (*first < 0xd800 || *first > 0xdfff) {
    AppendCode(out, *first);
    return at + 6;
  }
  const bool two = *first < 0xdc00 && text.substr(at + 6, 2) == "\\u";
  const std::optional<uint32_t> second = two ? Hex4(text, at + 8) : std::nullopt;
  if (second && *second >= 0xdc00 && *second <= 0xdfff) {
    AppendCode(out, 0x10000 + ((*first - 0xd800) << 10) + (*second - 0xdc00));
    return at + 12;
  }
  AppendCode(out, 0xfffd);
  return at + 6;
}

// The string whose first quote stands before `at`. Returns where it ends, behind its last quote; 0
// when it has none.
size_t ReadString(std::string_view text, size_t at, std::string& out) {
  constexpr std::string_view kFrom = "\"\\/bfnrt";
  constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
  out.clear();
  while (true) {
    const size_t next = FindQuote(text, at);
    if (next == text.size()) return 0;
    out.append(text, at, next - at);
    if (text[next] == '"') return next + 1;
    if (next + 1 == text.size()) return 0;
    const size_t plain = kFrom.find(text[next + 1]);
    at = next + 2;
    if (plain != std::string_view::npos) {
      out += kTo[plain];
      continue;
    }
    at = text[next + 1] == 'u' ? Unicode(text, next, out) : 0;
    if (at == 0) return 0;
  }
}

// The text of `"key":"text"` in the rest of the object, with or without a space.
std::string_view PlainField(std::string_view rest, std::string_view key) {
  const size_t at = rest.find(key);
  if (at == std::string_view::npos) return {};
  size_t begin = at + key.size();
  while (begin < rest.size() && rest[begin] == ' ') ++begin;
  if (begin == rest.size() || rest[begin] != '"') return {};
  const size_t end = rest.find('"', ++begin);
  return end == std::string_view::npos ? std::string_view() : rest.substr(begin, end - begin);
}

}  // namespace

bool ReadDockerLine(std::string_view text, DockerLine& line) {
  const size_t first = text[7] == ' ' ? 9 : 8;  // behind {"log":"
  const size_t end = ReadString(text, first, line.log);
  if (end == 0 || text.back() != '}') return false;
  const std::string_view rest = text.substr(end);
  const std::string_view stream = PlainField(rest, "\"stream\":");
  line.time = PlainField(rest, "\"time\":");
  line.error_stream = stream == "stderr";
  return !stream.empty() && !line.time.empty();
}

}  // namespace epochmeter::ingest::log
