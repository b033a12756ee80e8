// SPDX-License-Identifier: Apache-2.0
// Times as loggers print them, taken apart without guessing what is missing. Pure; any thread.
#pragma once

#include <optional>
#include <string_view>

#include "ingest/log/line_prefix.h"

namespace epochmeter::ingest::log {

// The stamp that begins at `at`: a time of day with seconds, with or without a date, or seconds
// since 1970. Returns where it ends; `at` when there is none, and `stamp` is then not meant.
size_t ReadStampAt(std::string_view text, size_t at, RawStamp& stamp);

// The text as a whole as a stamp, also in brackets ("timestamp" of a JSON line).
std::optional<RawStamp> ParseStampText(std::string_view text);

// glog's "I1209 10:38:20.123456" and its kin: with a year, or absl's "E0000 00:00:<seconds>".
// Returns its end, or `at`. `level` gets the letter's meaning.
size_t ReadGlogStampAt(std::string_view text, size_t at, RawStamp& stamp, LogLevel& level);

}  // namespace epochmeter::ingest::log
