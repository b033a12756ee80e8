// SPDX-License-Identifier: Apache-2.0
// Stamps that do not begin a line: "[epoch:1/9] [Time:[2026-08-28 00:11:31]]". Pure; any thread.
#pragma once

#include <string_view>

#include "ingest/log/line_prefix.h"

namespace epochmeter::ingest::log {

struct InnerStamp {
  RawStamp stamp;
  size_t begin = 0;  // of its bracket, where it has one
  size_t size = 0;   // 0: there is none
  bool before_level = false;
};

// The first stamp with a year within the first 256 bytes that a bracket, a word like "time" or a
// level behind it marks as one; a time of day only with a level behind it.
InnerStamp FindInnerStamp(std::string_view text);

}  // namespace epochmeter::ingest::log
