// SPDX-License-Identifier: Apache-2.0
// Text helpers without product knowledge. Numbers never depend on the locale. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace epochmeter::base {

// The parts between separators; an empty text has one empty part.
std::vector<std::string_view> Split(std::string_view text, char separator);
// The runs of non-space characters.
std::vector<std::string_view> SplitWhitespace(std::string_view text);
std::string_view Trim(std::string_view text);
std::string ToLowerAscii(std::string_view text);
bool StartsWith(std::string_view text, std::string_view prefix);
bool EndsWith(std::string_view text, std::string_view suffix);
std::string Join(const std::vector<std::string>& parts, std::string_view separator);
// Replaces each invalid UTF-8 byte sequence by U+FFFD.
std::string ToValidUtf8(std::string_view bytes);

// The whole text as a number, else nothing: no leading space, no rest, no overflow.
std::optional<int64_t> ParseInt(std::string_view text);
std::optional<uint64_t> ParseUint(std::string_view text, int base = 10);
std::optional<double> ParseDouble(std::string_view text);
// "500ms", "1s", "2.5", "5 min", "1h": seconds. A bare number is seconds.
std::optional<double> ParseDurationSeconds(std::string_view text);

// "131.2 GB" (1e9) for people; absent values are the caller's business.
std::string FormatBytes(double bytes);
// The candidate nearest to `word` by edit distance (at most 2, or a third of its length).
std::optional<std::string> NearestWord(std::string_view word,
                                       const std::vector<std::string>& candidates);

}  // namespace epochmeter::base
