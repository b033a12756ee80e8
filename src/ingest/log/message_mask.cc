// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/message_mask.h"

#include <algorithm>

#include "ingest/log/prefix_words.h"

namespace epochmeter::ingest::log {
namespace {

constexpr size_t kLeastHexBytes = 8;  // "deadbeef01": a hash or an address

struct AlarmWord {
  std::string_view text;
  Alarm alarm;
};
// In the case in which programs write them; a letter, digit or '_' beside them makes another word.
constexpr std::array<AlarmWord, 17> kLoudWords = {{{"Traceback (most recent", Alarm::kError},
                                                   {"ERROR", Alarm::kError},
                                                   {"FATAL", Alarm::kError},
                                                   {"CRITICAL", Alarm::kError},
                                                   {"Segmentation fault", Alarm::kError},
                                                   {"core dumped", Alarm::kError},
                                                   {"Killed", Alarm::kError},
                                                   {"Aborted", Alarm::kError},
                                                   {"CUDA error", Alarm::kError},
                                                   {"out of memory", Alarm::kError},
                                                   {"Out of memory", Alarm::kError},
                                                   {"Out Of Memory", Alarm::kError},
                                                   {"NVRM: Xid", Alarm::kError},
                                                   {"WARNING", Alarm::kWarning},
                                                   {"WARN", Alarm::kWarning},
                                                   {"Warning:", Alarm::kWarning},
                                                   {"gradient overflow", Alarm::kWarning}}};
// In any case.
constexpr std::array<std::string_view, 18> kHintWords = {
    "error",   "failed",    "failure",  "fail",    "exception", "timeout",
    "corrupt", "corrupted", "invalid",  "missing", "cannot",    "unable",
    "retry",   "retrying",  "overflow", "refused", "killed",    "disconnected"};

bool IsWordByte(char c) { return IsLetter(c) || IsDigit(c) || c == '_'; }

bool HasWord(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool begins = at == 0 || !IsWordByte(text[at - 1]);
    if (begins && (end == text.size() || !IsWordByte(text[end]))) return true;
  }
  return false;
}

// "ValueError: ...", "torch.OutOfMemoryError", "UserWarning: ...": a class in Python's style.
Alarm AlarmOfClass(std::string_view text) {
  const auto named = [text](std::string_view end) {
    for (size_t at = text.find(end); at != std::string_view::npos; at = text.find(end, at + 1)) {
      const size_t behind = at + end.size();
      const bool ends = behind == text.size() || text[behind] == ':' || text[behind] == '\'' ||
                        text[behind] == '(';
      if (at > 0 && IsLetter(text[at - 1]) && ends) return true;
    }
    return false;
  };
  if (named("Error") || named("Exception")) return Alarm::kError;
  return named("Warning") ? Alarm::kWarning : Alarm::kNone;
}

// A word of kHintWords that no number follows ("error: 0.25" is a metric).
bool HasHint(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    if (!IsLetter(text[at])) {
      ++at;
      continue;
    }
    size_t end = at;
    while (end < text.size() && IsWordByte(text[end])) ++end;
    const size_t size = end - at;
    if (size >= 4 && size <= 12) {
      std::array<char, 12> lower{};
      for (size_t i = 0; i < size; ++i) lower[i] = static_cast<char>(text[at + i] | 0x20);
      const std::string_view word(lower.data(), size);
      const size_t next = text.find_first_not_of(" :=@(", end);
      const bool number =
          next != text.npos && next > end && (IsDigit(text[next]) || text[next] == '-');
      if (!number && std::find(kHintWords.begin(), kHintWords.end(), word) != kHintWords.end()) {
        return true;
      }
    }
    at = end;
  }
  return false;
}

uint32_t HashOf(std::string_view token) {
  uint32_t hash = 2166136261U;
  for (const char c : token) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash == kVariableToken ? 1 : hash;
}

bool IsHexDigit(char c) {
  const char lower = static_cast<char>(c | 0x20);
  return IsDigit(c) || (lower >= 'a' && lower <= 'f');
}

// Where a run of bytes that a number may have ends: "-1.5e-05", "12:34:56", "1,024", "0x7f3a".
size_t NumberEnd(std::string_view text, size_t at) {
  if (text.substr(at, 2) == "0x" || text.substr(at, 2) == "0X") {
    at += 2;
    while (at < text.size() && IsHexDigit(text[at])) ++at;
    return at;
  }
  while (at < text.size()) {
    const char c = text[at];
    const bool inner =
        (c == '.' || c == ',' || c == ':') && at + 1 < text.size() && IsDigit(text[at + 1]);
    const bool exponent = (c == 'e' || c == 'E') && at + 2 < text.size() &&
                          (IsDigit(text[at + 1]) || IsDigit(text[at + 2]));
    if (exponent && !IsDigit(text[at + 1])) ++at;
    if (!IsDigit(c) && !inner && !exponent) break;
    ++at;
  }
  return at;
}

// The end of a run of hexadecimal digits that is long enough to be no word; `at` otherwise.
size_t HexEnd(std::string_view text, size_t at) {
  size_t end = at;
  bool digit = false;
  while (end < text.size() && (IsHexDigit(text[end]) || text[end] == '-')) {
    digit = digit || IsDigit(text[end]);
    ++end;
  }
  const bool ends = end == text.size() || !IsWordByte(text[end]);
  return digit && ends && end - at >= kLeastHexBytes ? end : at;
}

bool IsPathByte(char c) {
  return IsWordByte(c) || c == '/' || c == '.' || c == '-' || c == '~' || c == '%' || c == '+';
}

// The end of "/a/b.py" or "s3://x/y"; `at` when what begins there is no path.
size_t PathEnd(std::string_view text, size_t at) {
  size_t end = at;
  size_t slashes = 0;
  while (end < text.size() && (IsPathByte(text[end]) || text.substr(end, 3) == "://")) {
    slashes += text[end++] == '/' ? 1 : 0;
  }
  const bool rooted = text[at] == '/' || text[at] == '~' || text[at] == '.';
  return slashes >= 2 || (rooted && slashes >= 1) ? end : at;
}

// The end of a text in quotes, behind the second one; `at` when it does not end near.
size_t QuoteEnd(std::string_view text, size_t at) {
  const char quote = text[at];
  if (quote != '"' && quote != '\'' && quote != '`') return at;
  if (at > 0 && IsWordByte(text[at - 1])) return at;  // "didn't"
  const size_t end = text.find(quote, at + 1);
  return end == std::string_view::npos || end == at + 1 ? at : end + 1;
}

// The end of what varies at `at`; `at` when nothing does.
size_t VariableEnd(std::string_view text, size_t at) {
  const char c = text[at];
  const bool begins = at == 0 || !IsWordByte(text[at - 1]);
  if (begins) {
    size_t end = QuoteEnd(text, at);
    if (end == at && (IsHexDigit(c))) end = HexEnd(text, at);
    if (end == at && IsPathByte(c)) end = PathEnd(text, at);
    if (end != at) return end;
  }
  if (IsDigit(c)) return NumberEnd(text, at);
  const bool sign = (c == '-' || c == '+') && begins && at + 1 < text.size();
  if (sign && IsDigit(text[at + 1])) return NumberEnd(text, at + 1);
  return at;
}

// Lines and bars that are drawn of one sign have any length.
bool IsDrawnOn(std::string_view text, size_t at, std::string_view before) {
  const char c = text[at];
  if (c == '\xE2' && text.substr(at, 2) == "\xE2\x96") return true;  // block elements
  return !before.empty() && c == before.back() && !IsWordByte(c) && c > ' ';
}

void EndToken(MaskedMessage& masked, size_t begin) {
  const std::string_view token = std::string_view(masked.text).substr(begin);
  const bool letters = std::any_of(token.begin(), token.end(), [](char c) {
    return IsLetter(c) || static_cast<signed char>(c) < 0;
  });
  masked.token_hash[masked.tokens] = token == "*" ? kVariableToken : HashOf(token);
  masked.token_end[masked.tokens++] = static_cast<uint16_t>(masked.text.size());
  masked.fixed += letters ? 1 : 0;
}

}  // namespace

Alarm AlarmOf(LogLevel level, std::string_view message) {
  if (level == LogLevel::kError || level == LogLevel::kFatal) return Alarm::kError;
  if (level == LogLevel::kWarning) return Alarm::kWarning;
  message = message.substr(0, MaskedMessage::kMostBytes);
  Alarm alarm = AlarmOfClass(message);
  if (message.starts_with("Error: ") && message.size() > 7 && !IsDigit(message[7])) {
    alarm = Alarm::kError;
  }
  for (const AlarmWord& word : kLoudWords) {
    if (word.alarm > alarm && HasWord(message, word.text)) alarm = word.alarm;
  }
  return alarm == Alarm::kNone && HasHint(message) ? Alarm::kHint : alarm;
}

void MaskMessage(std::string_view message, MaskedMessage& masked) {
  message = message.substr(0, MaskedMessage::kMostBytes);
  masked.text.clear();
  masked.tokens = masked.fixed = 0;
  size_t begin = 0;
  for (size_t at = 0; at < message.size();) {
    const char c = message[at];
    if (static_cast<unsigned char>(c) <= ' ') {
      if (masked.text.size() != begin) {
        EndToken(masked, begin);
        if (masked.tokens == MaskedMessage::kMostTokens) break;
        masked.text += ' ';
        begin = masked.text.size();
      }
      ++at;
      continue;
    }
    if (IsDrawnOn(message, at, std::string_view(masked.text).substr(begin))) {
      at += c == '\xE2' ? std::min<size_t>(3, message.size() - at) : 1;
      continue;
    }
    const size_t end = VariableEnd(message, at);
    if (end == at) {
      masked.text += c;
      ++at;
      continue;
    }
    if (masked.text.size() == begin || masked.text.back() != '*') masked.text += '*';
    at = end;
  }
  if (masked.text.size() != begin && masked.tokens < MaskedMessage::kMostTokens) {
    EndToken(masked, begin);
  }
  if (!masked.text.empty() && masked.text.back() == ' ') masked.text.pop_back();
  uint64_t hash = masked.tokens;
  for (uint32_t i = 0; i < masked.tokens; ++i) {
    hash = (hash ^ masked.token_hash[i]) * 0x9E37'79B9'7F4A'7C15U;
    hash ^= hash >> 29;
  }
  masked.hash = hash;
}

}  // namespace epochmeter::ingest::log
