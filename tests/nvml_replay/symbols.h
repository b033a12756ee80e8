// SPDX-License-Identifier: Apache-2.0
// The calls of symbols.txt, as CMake reads them for the export maps.
#pragma once

#include <array>
#include <string_view>

namespace nvml_replay {

struct Symbol {
  std::string_view name;
  int since;  // first driver branch that has it
};

constexpr std::array kSymbols = {
#include "replay_symbols.inc"
};

}  // namespace nvml_replay
