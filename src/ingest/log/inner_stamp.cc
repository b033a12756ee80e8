// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/inner_stamp.h"

#include <cstring>

#include "base/strings.h"
#include "ingest/log/prefix_words.h"
#include "ingest/log/stamp_text.h"

namespace epochmeter::ingest::log {
namespace {

constexpr size_t kMostBytes = 256;
constexpr size_t kMostNameBytes = 48;
constexpr size_t kDateBytes = 11;  // "2026-08-28 "

// "hh:mm:ss" with its first colon at `colon`, not a part of a longer number.
bool IsClock(std::string_view text, size_t colon) {
  if (colon < 2 || colon + 5 >= text.size() || text[colon + 3] != ':') return false;
  if (colon > 2 && IsDigit(text[colon - 3])) return false;
  for (const size_t at : {colon - 2, colon - 1, colon + 1, colon + 2, colon + 4, colon + 5}) {
    if (!IsDigit(text[at])) return false;
  }
  return true;
}

// Behind the stamp and perhaps its bracket and a name stands a level.
bool LevelFollows(std::string_view text, size_t at) {
  for (int words = 0; words < 2; ++words) {
    while (at < text.size() && std::strchr(" \t]-:|[", text[at]) != nullptr) ++at;
    size_t end = at;
    while (end < text.size() && (IsNameByte(text[end]))) ++end;
    if (LevelOfWord(text.substr(at, end - at)) != LogLevel::kNone) return true;
    if (end == at) return false;
    at = end;
  }
  return false;
}

// "Time:[", "ts=", "\"timestamp\": \"", "date ", "AT " in front of a stamp.
bool IsNamedTime(std::string_view before) {
  while (!before.empty() && std::strchr(" \t[(\"':=", before.back()) != nullptr) {
    before.remove_suffix(1);
  }
  size_t begin = before.size();
  while (begin > 0 && (IsLetter(before[begin - 1]) || before[begin - 1] == '_')) --begin;
  const std::string word = base::ToLowerAscii(before.substr(begin));
  return base::EndsWith(word, "time") || base::EndsWith(word, "timestamp") || word == "ts" ||
         word == "date" || word == "at";
}

InnerStamp At(std::string_view text, size_t begin, size_t clock) {
  InnerStamp inner;
  const size_t end = ReadStampAt(text, begin, inner.stamp);
  if (end < clock + 8) return {};
  const char before = begin > 0 ? text[begin - 1] : ' ';
  if (IsNameByte(before)) return {};
  inner.before_level = LevelFollows(text, end);
  // "ME(123:456,MainProcess):2026-03-08-09:14:55.123.456 " of MindSpore.
  const bool behind_colon = before == ':' && begin <= kMostNameBytes;
  const bool marked =
      before == '[' || before == '(' || behind_colon || IsNamedTime(text.substr(0, begin));
  if (!inner.before_level && !(marked && inner.stamp.year)) return {};
  inner.begin = before == '[' ? begin - 1 : begin;
  inner.size = end - inner.begin;
  return inner;
}

}  // namespace

InnerStamp FindInnerStamp(std::string_view text) {
  text = text.substr(0, kMostBytes);
  for (size_t colon = text.find(':'); colon != std::string_view::npos;
       colon = text.find(':', colon + 1)) {
    if (!IsClock(text, colon)) continue;
    const size_t clock = colon - 2;
    InnerStamp inner;
    if (clock >= kDateBytes) inner = At(text, clock - kDateBytes, clock);
    if (inner.size == 0) inner = At(text, clock, clock);
    if (inner.size != 0) return inner;
    colon += 5;
  }
  return {};
}

}  // namespace epochmeter::ingest::log
