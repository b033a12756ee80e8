// SPDX-License-Identifier: Apache-2.0
// The field ids that have a key of their own. Every other id is reached by the key "field:ID".
#pragma once

#include <cstdint>
#include <span>

namespace nvml_replay {

enum class FieldScope : uint8_t {
  kNone,     // the scope is not looked at
  kLink,     // the number of an NVLink; the same value for UINT32_MAX
  kLinkSum,  // the number of an NVLink, or UINT32_MAX for the sum of all
  kPower     // 0 GPU, 1 module, 2 memory
};

struct Field {
  uint32_t id;
  const char* key;
  uint32_t type;  // NvmlValueType
  int since;      // first driver branch that knows the id
  FieldScope scope = FieldScope::kNone;
};

// By id.
std::span<const Field> Fields();
// Null for an id without a key of its own.
const Field* FindField(uint32_t id);

}  // namespace nvml_replay
