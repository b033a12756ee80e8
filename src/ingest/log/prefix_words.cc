// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/prefix_words.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace epochmeter::ingest::log {
namespace {

struct LevelWord {
  std::string_view upper;
  LogLevel level;
};
// By their first letters; LevelOfWord looks from the first one with the word's letter on.
constexpr std::array<LevelWord, 15> kWords = {{{"ALERT", LogLevel::kFatal},
                                               {"CRITICAL", LogLevel::kFatal},
                                               {"CRIT", LogLevel::kFatal},
                                               {"DEBUG", LogLevel::kDebug},
                                               {"ERROR", LogLevel::kError},
                                               {"ERR", LogLevel::kError},
                                               {"EMERG", LogLevel::kFatal},
                                               {"EVENT", LogLevel::kInfo},
                                               {"FATAL", LogLevel::kFatal},
                                               {"INFO", LogLevel::kInfo},
                                               {"NOTICE", LogLevel::kInfo},
                                               {"SUCCESS", LogLevel::kInfo},
                                               {"TRACE", LogLevel::kDebug},
                                               {"WARNING", LogLevel::kWarning},
                                               {"WARN", LogLevel::kWarning}}};
// Of each letter 'A' to 'Z' the first word in kWords, 15 where there is none.
constexpr std::array<uint8_t, 26> kFirstWord = [] {
  std::array<uint8_t, 26> first{};
  first.fill(kWords.size());
  for (size_t i = kWords.size(); i-- > 0;) {
    first[static_cast<size_t>(kWords[i].upper[0] - 'A')] = static_cast<uint8_t>(i);
  }
  return first;
}();

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
  if (word.size() < 3 || word.size() > 8 || !IsLetter(word[0])) return LogLevel::kNone;
  const char upper = static_cast<char>(word[0] & ~0x20);
  for (size_t i = kFirstWord[static_cast<size_t>(upper - 'A')];
       i < kWords.size() && kWords[i].upper[0] == upper; ++i) {
    if (SameWord(word, kWords[i].upper)) return kWords[i].level;
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
  constexpr std::array<std::string_view, 9> kEndings = {"py", "cc", "cpp", "cu", "h",
                                                        "c",  "rs", "go",  "hpp"};
  for (size_t dot = text.find('.', 1); dot != std::string_view::npos;
       dot = text.find('.', dot + 1)) {
    size_t end = dot + 1;
    while (end < text.size() && IsLetter(text[end])) ++end;
    const std::string_view ending = text.substr(dot + 1, end - dot - 1);
    if (ending.empty() || ending.size() > 3) continue;
    if (end < text.size() && IsNameByte(text[end])) continue;
    if (std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end()) return true;
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
  constexpr std::array<std::string_view, 12> kPhases = {"train", "valid",     "val",   "eval",
                                                        "test",  "training",  "epoch", "step",
                                                        "iter",  "iteration", "batch", "loss"};
  const auto same = [name](std::string_view phase) {
    if (phase.size() != name.size()) return false;
    for (size_t i = 0; i < name.size(); ++i) {
      if ((name[i] | 0x20) != phase[i]) return false;
    }
    return true;
  };
  return std::any_of(kPhases.begin(), kPhases.end(), same);
}

std::string_view LevelName(LogLevel level) {
  constexpr std::array<std::string_view, 6> kNames = {"",        "debug", "info",
                                                      "warning", "error", "fatal"};
  return kNames[static_cast<size_t>(level)];
}

}  // namespace epochmeter::ingest::log
