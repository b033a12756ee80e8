// SPDX-License-Identifier: Apache-2.0
// What /proc tells of one process. Parsers never trust the text: what is cut short or not a number
// gives nothing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace epochmeter::collect {

// A pid is used again after its process has ended; with the start time it is unique for a boot.
struct ProcKey {
  int32_t pid = 0;
  uint64_t start_ticks = 0;
  // clang-tidy 14 sees a 0 in the default. NOLINTNEXTLINE(modernize-use-nullptr)
  auto operator<=>(const ProcKey&) const = default;
};

struct ProcStat {
  ProcKey key;
  int32_t parent = 0;
  int32_t group = 0;
  int32_t session = 0;
  char state = '?';
  uint64_t cpu_ticks = 0;         // user and system, of the process itself
  uint64_t reaped_cpu_ticks = 0;  // of children that it waited for, and theirs
  uint64_t major_faults = 0;
  uint64_t reaped_major_faults = 0;
  uint64_t minor_faults = 0;
  uint64_t reaped_minor_faults = 0;
  uint64_t threads = 0;
  uint64_t rss_pages = 0;

  // A zombie has ended but is not waited for; its CPU time is still its own.
  bool ended() const { return state == 'Z' || state == 'X' || state == 'x'; }
};

// The text of /proc/PID/stat.
std::optional<ProcStat> ParseProcStat(std::string_view text);

struct ProcIo {
  uint64_t read_bytes = 0;     // from storage
  uint64_t written_bytes = 0;  // towards storage
  uint64_t read_chars = 0;     // by read(2) and its like, the page cache and pipes included
  uint64_t written_chars = 0;
};
// The text of /proc/PID/io.
std::optional<ProcIo> ParseProcIo(std::string_view text);

// The number behind `key` ("Pss:", "voluntary_ctxt_switches:") at the beginning of a line.
std::optional<uint64_t> NumberOfKey(std::string_view text, std::string_view key);

// The text behind `key` ("Cpus_allowed_list:") at the beginning of a line, without blanks.
std::optional<std::string_view> TextOfKey(std::string_view text, std::string_view key);

// True for programs that start another one and wait for it, such as a shell. `name` is without its
// folder.
bool IsWrapperProgram(std::string_view name);

// The value of `name` in the text of /proc/PID/environ.
std::optional<std::string_view> EnvironValue(std::string_view environ_text, std::string_view name);

}  // namespace epochmeter::collect
