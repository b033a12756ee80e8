// SPDX-License-Identifier: Apache-2.0
#include "collect/proc_pid.h"

#include <algorithm>

#include "base/strings.h"
#include "collect/proc_file.h"

namespace epochmeter::collect {

namespace {

// Ids may be -1 or 0; what is out of range is as good as unknown.
int32_t AsId(std::string_view word) {
  const auto value = base::ParseInt(word);
  const bool fits = value && *value >= 0 && *value <= INT32_MAX;
  return fits ? static_cast<int32_t>(*value) : 0;
}

}  // namespace

// A line reads: PID (COMM) STATE PPID PGRP SESSION tty tpgid flags MINFLT CMINFLT MAJFLT CMAJFLT
// UTIME STIME CUTIME CSTIME priority nice THREADS itrealvalue START vsize RSS ... COMM may hold
// spaces and parentheses, so the fields count from the last ')'.
std::optional<ProcStat> ParseProcStat(std::string_view text) {
  const size_t open = text.find(" (");
  const size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return std::nullopt;
  }
  constexpr size_t kFields = 22;
  std::array<std::string_view, kFields> word;
  std::string_view rest = text.substr(close + 1);
  for (std::string_view& w : word) {
    if (!NextWord(rest, w)) return std::nullopt;
  }
  ProcStat stat{.key = {.pid = AsId(text.substr(0, open)), .start_ticks = 0},
                .parent = AsId(word[1]),
                .group = AsId(word[2]),
                .session = AsId(word[3]),
                .state = word[0].front()};
  bool valid = stat.key.pid > 0;
  const auto number = [&](size_t field) {
    const auto value = base::ParseUint(word[field]);
    valid = valid && value.has_value();
    return value.value_or(0);
  };
  stat.minor_faults = number(7);
  stat.reaped_minor_faults = number(8);
  stat.major_faults = number(9);
  stat.reaped_major_faults = number(10);
  stat.cpu_ticks = number(11) + number(12);
  stat.reaped_cpu_ticks = number(13) + number(14);
  stat.threads = number(17);
  stat.key.start_ticks = number(19);
  stat.rss_pages = number(21);
  return valid ? std::optional(stat) : std::nullopt;
}

std::optional<uint64_t> NumberOfKey(std::string_view text, std::string_view key) {
  std::string_view line;
  while (NextLine(text, line)) {
    if (!base::StartsWith(line, key)) continue;
    line.remove_prefix(key.size());
    return NextUint(line);
  }
  return std::nullopt;
}

std::optional<std::string_view> TextOfKey(std::string_view text, std::string_view key) {
  std::string_view line;
  while (NextLine(text, line)) {
    if (!base::StartsWith(line, key)) continue;
    line.remove_prefix(key.size());
    return base::Trim(line);
  }
  return std::nullopt;
}

std::optional<ProcIo> ParseProcIo(std::string_view text) {
  const auto read = NumberOfKey(text, "read_bytes:");
  const auto written = NumberOfKey(text, "write_bytes:");
  const auto read_chars = NumberOfKey(text, "rchar:");
  const auto written_chars = NumberOfKey(text, "wchar:");
  if (!read || !written || !read_chars || !written_chars) return std::nullopt;
  return ProcIo{.read_bytes = *read,
                .written_bytes = *written,
                .read_chars = *read_chars,
                .written_chars = *written_chars};
}

bool IsWrapperProgram(std::string_view name) {
  constexpr std::array<std::string_view, 16> kNames = {
      "sh",   "bash", "dash",    "zsh",     "ksh", "busybox", "tini", "dumb-init",
      "time", "sudo", "timeout", "numactl", "uv",  "strace",  "srun", "apptainer"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

std::optional<std::string_view> EnvironValue(std::string_view environ_text, std::string_view name) {
  while (!environ_text.empty()) {
    const size_t end = environ_text.find('\0');
    const std::string_view entry = environ_text.substr(0, end);
    if (entry.size() > name.size() && entry[name.size()] == '=' && base::StartsWith(entry, name)) {
      return entry.substr(name.size() + 1);
    }
    if (end == std::string_view::npos) break;
    environ_text.remove_prefix(end + 1);
  }
  return std::nullopt;
}

}  // namespace epochmeter::collect
