// SPDX-License-Identifier: Apache-2.0
#include "model/report.h"

#include <array>

namespace epochmeter::model {

std::string_view SeverityName(Severity severity) {
  constexpr std::array<std::string_view, 4> kNames = {"info", "warning", "critical",
                                                      "not_applicable"};
  return kNames[static_cast<size_t>(severity)];
}

}  // namespace epochmeter::model
