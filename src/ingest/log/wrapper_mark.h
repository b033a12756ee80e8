// SPDX-License-Identifier: Apache-2.0
// What container runtimes, launchers and system logs write in front of a line. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace epochmeter::ingest::log {

enum class WrapperKind : uint8_t {
  kNone,
  // Known by their look alone.
  kPod,      // "[pod/train-0/main] "
  kCri,      // "2024-01-01T00:00:00.123456789Z stdout F "
  kSyslog,   // "Dec  9 10:45:45 host unit[12]: ", also with an ISO time
  kMpi,      // "[1,0]<stderr>:"
  kRankTag,  // "[rank3]:", "[default0]:"
  kRay,      // "(TaskRunner pid=12) "
  // Look like text of a training too; only believed when a file repeats them.
  kTime,      // "2024-01-01T00:00:00.1234567Z "
  kHost,      // "vm-07-05: "
  kIndex,     // "15: ", "[15] "
  kContainer  // "trainer-1  | "
};
inline constexpr size_t kWrapperKinds = 11;

struct WrapperMark {
  WrapperKind kind = WrapperKind::kNone;
  size_t length = 0;             // of the mark with the space behind it
  std::string_view source = {};  // empty when it names nobody
  std::string_view stamp = {};   // empty when it has no time
  std::optional<int32_t> rank = {};
  bool local_rank = false;  // the rank counts inside one node
  bool error_stream = false;
  bool partial = false;  // the next line of the same output stream goes on with this one
};

// False for nearly all lines without such a mark, by a look at a few bytes.
inline bool MayHaveSureMark(std::string_view text) {
  if (text.size() < 6) return false;
  const char first = text[0];
  if (first == '[') {
    const char next = text[1];
    const bool index = next >= '0' && next <= '9' &&
                       (text[2] == ',' || text[3] == ',' || text[4] == ',' || text[5] == ',');
    return index || next == 'p' || next == 'r' || next == 'd' || next == 't' || next == 'w' ||
           next == 'a';
  }
  if (first == '(') return true;
  if (text.size() < 16) return false;
  if (first >= '0' && first <= '9') return text[4] == '-' && text[10] == 'T';
  const bool day = text[6] == ' ' || text[7] == ' ' || text[8] == '-';
  return first >= 'A' && first <= 'W' && text[3] == ' ' && day;
}

// A mark that is known by its look, else kNone.
WrapperMark ReadSureMark(std::string_view text);
// What may be a mark of one of the other kinds, else kNone.
WrapperMark ReadLikelyMark(std::string_view text);
// A time with zone and one space behind it, whatever its number of digits.
WrapperMark ReadTimeMark(std::string_view text);

// UTC, when year and zone are printed.
std::optional<int64_t> MarkWallNs(std::string_view stamp);

// The text without Ray's " [repeated 3x across cluster]".
std::string_view WithoutRayRepeats(std::string_view text);

}  // namespace epochmeter::ingest::log
