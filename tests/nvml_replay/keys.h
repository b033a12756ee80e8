// SPDX-License-Identifier: Apache-2.0
// The keys that a script may use under "values".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nvml_replay {

// A key may carry a part behind @: the link or power scope of a field, a fan, a clock domain.
bool KnownKey(std::string_view key);
std::string UnknownKeyHelp();

struct GpmName {
  uint32_t id;
  const char* key;
  const char* name;
  const char* unit;
};

// Null for a metric id that has no key of its own; those are reached by "gpm:ID".
const GpmName* FindGpm(uint32_t id);

}  // namespace nvml_replay
