// SPDX-License-Identifier: Apache-2.0
// What `epochmeter doctor` found: one fact with its cause and its fix. Plain text that a report may
// carry as well.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace epochmeter::model {

// Ok: as it should be. Info: worth knowing, nothing is lost. Limited: something can't be measured
// here or is less true. Fault: something is broken and has a fix.
enum class CheckStatus : uint8_t { kOk, kInfo, kLimited, kFault };

constexpr std::string_view CheckStatusName(CheckStatus status) {
  constexpr std::array<std::string_view, 4> kNames = {"ok", "info", "limited", "fault"};
  return kNames[static_cast<size_t>(status)];
}

struct CheckFact {
  CheckStatus status = CheckStatus::kOk;
  std::string what;
  std::string why;  // the cause; may be empty
  std::string fix;  // one line; never empty for a fault
};
using CheckFacts = std::vector<CheckFact>;

}  // namespace epochmeter::model
