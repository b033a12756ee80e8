// SPDX-License-Identifier: Apache-2.0
// Small readers for the sentences of events. Pure; text of any kind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ingest/log/events/event_family.h"

namespace epochmeter::ingest::log {

bool Contains(std::string_view text, std::string_view part);
// What stands behind the first `mark`, without leading spaces; nothing when there is none.
std::optional<std::string_view> After(std::string_view text, std::string_view mark);
// The whole number behind the mark, with sign.
std::optional<int64_t> IntAfter(std::string_view text, std::string_view mark);
std::optional<int64_t> IntAtBegin(std::string_view text);
// The word behind the mark, up to a space or one of `ends`; empty when there is none.
std::string_view WordAfter(std::string_view text, std::string_view mark, std::string_view ends);
// What stands between two marks, not longer than `most`; empty when they are not there.
std::string_view Between(std::string_view text, std::string_view begin, std::string_view end,
                         size_t most = 300);
// The message of a line: without stamp, level and logger.
std::string_view MessageOf(std::string_view text);

// A line of code, of a diff, of a list or a quotation: it speaks of events, it reports none.
bool IsProse(std::string_view text);
// "W0310 00:50:21.207461   900 device_context.cc:362] Please NOTE ..."
bool IsGlogWarning(std::string_view text);

// "torch.OutOfMemoryError: CUDA out of memory", "KeyboardInterrupt": how Python ends a traceback.
struct ExceptionText {
  std::string_view type;  // "torch.OutOfMemoryError", "RayTaskError(ValueError)"
  std::string_view message;
};
// Nothing when the text does not begin as an exception does.
std::optional<ExceptionText> ReadExceptionText(std::string_view text);

// The text is cut to what an event keeps.
LogEvent MakeEvent(std::string_view kind, const EventLine& line);
inline constexpr size_t kMostEventText = 500;
// At most `most` bytes, cut between characters.
std::string_view CutText(std::string_view text, size_t most);

// Add a number where there is one.
void AddNumber(LogEvent* event, std::string_view key, std::optional<int64_t> value);
void AddNumber(LogEvent* event, std::string_view key, std::optional<double> value);
void AddText(LogEvent* event, std::string_view key, std::string_view value);
// Null when the event has no such number, or it is a text.
std::optional<int64_t> FindInt(const LogEvent& event, std::string_view key);
std::string_view FindText(const LogEvent& event, std::string_view key);

}  // namespace epochmeter::ingest::log
