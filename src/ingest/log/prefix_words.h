// SPDX-License-Identifier: Apache-2.0
// Words that loggers write in front of messages: levels, names, places in code. Pure; any thread.
#pragma once

#include <string_view>

#include "ingest/log/line_prefix.h"

namespace epochmeter::ingest::log {

// "INFO", "Warning", "err"; kNone for any other word. Words in mixed case ("iNfO") are none.
LogLevel LevelOfWord(std::string_view word);
// 'I', 'W', ... as glog and TensorFlow shorten them.
LogLevel LevelOfLetter(char letter);
// As either of them, as they stand in brackets.
LogLevel LevelOfBracket(std::string_view text);

inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }
inline bool IsLetter(char c) {
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'z';
}
inline bool IsNameByte(char c) {
  return IsLetter(c) || IsDigit(c) || c == '_' || c == '.' || c == '/' || c == '\\';
}
// "trainer.py:912", "port.cc:113", "topology.py:169:__init__", "main.py line 7"
bool IsPlaceInCode(std::string_view text);
// "train_inner", "fairseq_cli.train": a word that may be a logger's name.
bool IsName(std::string_view text);
// Words that say what a line reports ("train", "valid"); they stay in the message also where a
// logger's name stands.
bool IsPhase(std::string_view name);
// "warning"; empty for kNone.
std::string_view LevelName(LogLevel level);

}  // namespace epochmeter::ingest::log
