// SPDX-License-Identifier: Apache-2.0
// What loggers call their levels. Pure; any thread.
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
// "warning"; empty for kNone.
std::string_view LevelName(LogLevel level);

}  // namespace epochmeter::ingest::log
