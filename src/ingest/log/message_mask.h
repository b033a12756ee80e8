// SPDX-License-Identifier: Apache-2.0
// What stays the same in messages that differ only in numbers, addresses, paths and quoted texts.
// Pure; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "ingest/log/line_prefix.h"

namespace epochmeter::ingest::log {

// How loud a message is: what its logger says, else the words in it. kHint is for words ("failed",
// "retry") that prose may have too.
enum class Alarm : uint8_t { kNone, kHint, kWarning, kError };
Alarm AlarmOf(LogLevel level, std::string_view message);

// A message cut into words at spaces; what varies is a '*'. Of long ones only the begin counts.
struct MaskedMessage {
  static constexpr size_t kMostTokens = 24;
  static constexpr size_t kMostBytes = 320;  // of the message that are looked at

  std::string text;  // tokens with one space between them
  std::array<uint32_t, kMostTokens> token_hash{};
  std::array<uint16_t, kMostTokens> token_end{};  // in `text`
  uint32_t tokens = 0;
  uint32_t fixed = 0;  // tokens with letters that are no variable
  uint64_t hash = 0;
};
inline constexpr uint32_t kVariableToken = 0;  // its hash

// Writes into `masked`, whose memory is used again.
void MaskMessage(std::string_view message, MaskedMessage& masked);

}  // namespace epochmeter::ingest::log
