// SPDX-License-Identifier: Apache-2.0
#include "model/report.h"

#include <array>

namespace epochmeter::model {

std::string_view SeverityName(Severity severity) {
  constexpr std::array<std::string_view, 4> kNames = {"info", "warning", "critical",
                                                      "not_applicable"};
  return kNames[static_cast<size_t>(severity)];
}

std::string_view TimeUseName(TimeUse use) {
  constexpr std::array<std::string_view, kTimeUseCount> kNames = {
      "productive", "data_wait",  "communication", "throttle", "repeated",
      "evaluation", "checkpoint", "compile",       "other",    "stall",
      "idle",       "start_up",   "tear_down",     "unused",   "unknown"};
  return kNames[static_cast<size_t>(use)];
}

}  // namespace epochmeter::model
