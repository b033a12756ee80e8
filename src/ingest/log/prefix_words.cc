// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/prefix_words.h"

#include <array>

#include "base/strings.h"

namespace epochmeter::ingest::log {
namespace {

struct LevelWord {
  std::string_view upper;
  LogLevel level;
};
constexpr std::array<LevelWord, 15> kWords = {{{"INFO", LogLevel::kInfo},
                                               {"WARNING", LogLevel::kWarning},
                                               {"ERROR", LogLevel::kError},
                                               {"DEBUG", LogLevel::kDebug},
                                               {"WARN", LogLevel::kWarning},
                                               {"ERR", LogLevel::kError},
                                               {"FATAL", LogLevel::kFatal},
                                               {"CRITICAL", LogLevel::kFatal},
                                               {"CRIT", LogLevel::kFatal},
                                               {"EMERG", LogLevel::kFatal},
                                               {"ALERT", LogLevel::kFatal},
                                               {"NOTICE", LogLevel::kInfo},
                                               {"SUCCESS", LogLevel::kInfo},
                                               {"TRACE", LogLevel::kDebug},
                                               {"EVENT", LogLevel::kInfo}}};

bool SameWord(std::string_view word, std::string_view upper) {
  if (word.size() != upper.size()) return false;
  const bool upper_first = word[0] < 'a', upper_rest = word[1] < 'a';
  if (upper_rest && !upper_first) return false;
  for (size_t i = 0; i < word.size(); ++i) {
    const bool is_upper = i == 0 ? upper_first : upper_rest;
    if (word[i] != (is_upper ? upper[i] : static_cast<char>(upper[i] | 0x20))) return false;
  }
  return true;
}

}  // namespace

LogLevel LevelOfWord(std::string_view word) {
  if (word.size() < 3 || word.size() > 8) return LogLevel::kNone;
  for (const LevelWord& known : kWords) {
    if ((word[0] & ~0x20) == known.upper[0] && SameWord(word, known.upper)) return known.level;
  }
  return LogLevel::kNone;
}

LogLevel LevelOfLetter(char letter) {
  switch (letter) {
    case 'D':
      return LogLevel::kDebug;
    case 'I':
      return LogLevel::kInfo;
    case 'W':
      return LogLevel::kWarning;
    case 'E':
      return LogLevel::kError;
    case 'F':
    case 'C':
      return LogLevel::kFatal;
    default:
      return LogLevel::kNone;
  }
}

LogLevel LevelOfBracket(std::string_view text) {
  return text.size() == 1 ? LevelOfLetter(text[0]) : LevelOfWord(text);
}

bool IsPlaceInCode(std::string_view text) {
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos || dot == 0) return false;
  for (const std::string_view end : {".py", ".cc", ".cpp", ".cu", ".h", ".c", ".rs", ".go"}) {
    const size_t at = text.rfind(end);
    if (at == std::string_view::npos) continue;
    const size_t behind = at + end.size();
    if (behind == text.size() || !IsNameByte(text[behind])) return true;
  }
  return false;
}

bool IsName(std::string_view text) {
  if (text.empty() || !(IsLetter(text[0]) || text[0] == '_')) return false;
  for (const char c : text) {
    if (!IsNameByte(c) && c != '-') return false;
  }
  return true;
}

bool IsPhase(std::string_view name) {
  for (const std::string_view word : {"train", "valid", "val", "eval", "test", "training"}) {
    if (base::ToLowerAscii(name) == word) return true;
  }
  return false;
}

std::string_view LevelName(LogLevel level) {
  constexpr std::array<std::string_view, 6> kNames = {"",        "debug", "info",
                                                      "warning", "error", "fatal"};
  return kNames[static_cast<size_t>(level)];
}

}  // namespace epochmeter::ingest::log
