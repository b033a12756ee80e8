// SPDX-License-Identifier: Apache-2.0
// Pressure stall information in the format that /proc/pressure and cgroup files share.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "collect/proc_file.h"

namespace epochmeter::collect {

// The total in us of the line that begins with `wanted` ("some", "full"). A line reads
// "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345".
inline std::optional<uint64_t> PressureTotalUs(std::string_view text, std::string_view wanted) {
  constexpr std::string_view kKey = " total=";
  std::string_view line;
  while (NextLine(text, line)) {
    const size_t at = line.find(kKey);
    if (line.substr(0, wanted.size()) != wanted || at == std::string_view::npos) continue;
    std::string_view rest = line.substr(at + kKey.size());
    return NextUint(rest);
  }
  return std::nullopt;
}

}  // namespace epochmeter::collect
