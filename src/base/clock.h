// SPDX-License-Identifier: Apache-2.0
// The clocks of a run. Every time in epochmeter is CLOCK_MONOTONIC ns unless its name says
// otherwise; wall time comes only from anchors that pair both. Any thread.
#pragma once

#include <cstdint>
#include <string>

namespace epochmeter::base {

inline constexpr int64_t kNsPerSecond = 1'000'000'000;
inline constexpr int64_t kNsPerMs = 1'000'000;

int64_t MonotonicNs();
int64_t BoottimeNs();   // like monotonic, but counts suspend
int64_t WallNs();       // UTC since 1970; may jump
int64_t ThreadCpuNs();  // CPU time of the calling thread

// The three clocks read together (the wall reading lies between two monotonic ones).
struct ClockAnchor {
  int64_t mono_ns = 0;
  int64_t boot_ns = 0;
  int64_t wall_ns = 0;
  bool operator==(const ClockAnchor&) const = default;
};
ClockAnchor ReadClockAnchor();

constexpr double SecondsFromNs(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

// RFC 3339 UTC with ms: "2026-08-22T10:15:30.123Z".
std::string FormatUtc(int64_t wall_ns);
// "20260822T101530Z", sortable, for names.
std::string FormatUtcCompact(int64_t wall_ns);
// Local time "10:15:30" for terminal lines.
std::string FormatLocalTime(int64_t wall_ns);
// "2 h 03 min", "4 min 12 s", "12.3 s", "85 ms": for people.
std::string FormatDuration(double seconds);

}  // namespace epochmeter::base
