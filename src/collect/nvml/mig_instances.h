// SPDX-License-Identifier: Apache-2.0
// The MIG instances of a GPU that can run something.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collect/nvml/api.h"

namespace epochmeter::collect::nvml {

struct MigInstance {
  NvmlDevice handle = nullptr;  // the driver uses it again for others; the UUID tells which this is
  uint32_t gpu_instance = 0;
  uint32_t compute_instance = 0;
  std::string uuid;  // "MIG-..."; empty where the driver gives none
};

// Whether MIG mode is on; nothing when the driver can't say.
std::optional<bool> IsMigOn(const Api& api, NvmlDevice gpu);
// Empty when MIG mode is off; nothing when the driver can't say. About four calls an instance.
std::optional<std::vector<MigInstance>> ListMigInstances(const Api& api, NvmlDevice gpu);

}  // namespace epochmeter::collect::nvml
