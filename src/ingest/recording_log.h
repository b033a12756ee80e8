// SPDX-License-Identifier: Apache-2.0
// Puts the lines of a training's own log at their time. Lines carry wall time in an unknown zone;
// the zone is the one in which the log's stamps fall into the recording. Lines without a stamp
// belong to the one before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace epochmeter::ingest {

// Wall time of a line's stamp as if it were UTC, in ns: "2026-11-30 06:59:57,274" at its begin, or
// glog's "W1130 06:51:48.846000" near it, whose year is `year`. Nothing when there is none.
std::optional<int64_t> LogStampNs(std::string_view line, int year);

struct LogLine {
  std::optional<int64_t> t_ns;  // CLOCK_MONOTONIC; nothing when the line can't be placed
  std::string text;             // with its line end
};

// `offset_ns` is wall minus monotonic; `begin_ns` to `end_ns` (monotonic) is the recording. Times
// do not fall from line to line. All are without a time when no zone fits.
std::vector<LogLine> PlaceLog(const std::vector<std::string>& lines, int64_t offset_ns,
                              int64_t begin_ns, int64_t end_ns);

}  // namespace epochmeter::ingest
