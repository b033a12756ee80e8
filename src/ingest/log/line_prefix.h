// SPDX-License-Identifier: Apache-2.0
// What a logger writes in front of a message: time, level, name, process. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace epochmeter::ingest::log {

// A time as printed, taken apart. Fields that were not printed are absent.
struct RawStamp {
  // As printed; in its brackets where they hold nothing else and no year: "[08/30 10:11:12]".
  std::string_view text;
  size_t clock_at = 0;  // where the time of day begins in it
  std::optional<int32_t> year;
  std::optional<int32_t> month, day;
  // Of two numbers whose order the line alone does not tell ("05/06/24"); month and day are absent.
  std::optional<int32_t> first, second;
  std::optional<int64_t> of_day_ns;
  std::optional<int64_t> offset_s;  // of the zone: local time is ahead of UTC
  std::optional<int64_t> unix_ns;   // seconds since 1970 were printed
};

enum class LogLevel : uint8_t { kNone, kDebug, kInfo, kWarning, kError, kFatal };

struct LinePrefix {
  std::optional<RawStamp> stamp;
  size_t stamp_at = 0;  // where stamp->text begins
  LogLevel level = LogLevel::kNone;
  std::string_view logger;  // "ppdet.engine"; empty when none is named
  // Where the message begins; spaces of its own that indent it are part of it.
  size_t message = 0;
  // Where this prefix begins, when it does not begin the line: a bar's text stands in front of it
  // ("  0%| | 0/136 [00:00<?, ?it/s][2026/08/27 10:04:53] ppocr INFO: ").
  size_t glued = 0;
};

// `text` has no wrapper any more. A text without any prefix has its message at 0.
LinePrefix ReadLinePrefix(std::string_view text);

// The stamp of a line that is made like another one, whose stamp began at `stamp_at`; nothing when
// none begins there. A fraction of the time that ReadLinePrefix takes.
std::optional<RawStamp> ReadStampLike(std::string_view text, size_t stamp_at);

}  // namespace epochmeter::ingest::log
