// SPDX-License-Identifier: Apache-2.0
#include "collect/nvml/mig_instances.h"

#include <algorithm>

#include "collect/nvml/identity.h"

namespace epochmeter::collect::nvml {
namespace {

constexpr uint32_t kMostInstances = 64;  // no GPU has more than 7

}  // namespace

std::optional<bool> IsMigOn(const Api& api, NvmlDevice gpu) {
  uint32_t mode = 0;
  uint32_t pending = 0;
  if (api.mig_mode == nullptr || api.mig_mode(gpu, &mode, &pending) != kNvmlSuccess) return {};
  return mode == 1;
}

std::optional<std::vector<MigInstance>> ListMigInstances(const Api& api, NvmlDevice gpu) {
  const std::optional<bool> on = IsMigOn(api, gpu);
  if (on == false) return std::vector<MigInstance>();
  const bool complete = api.max_mig_devices != nullptr && api.mig_handle != nullptr &&
                        api.gpu_instance_id != nullptr && api.compute_instance_id != nullptr;
  uint32_t count = 0;
  if (!on || !complete || api.max_mig_devices(gpu, &count) != kNvmlSuccess) return {};
  std::vector<MigInstance> instances;
  for (uint32_t index = 0; index < std::min(count, kMostInstances); ++index) {
    MigInstance found;
    // Holes are usual; an instance without a compute instance can't run anything.
    if (api.mig_handle(gpu, index, &found.handle) != kNvmlSuccess ||
        api.gpu_instance_id(found.handle, &found.gpu_instance) != kNvmlSuccess ||
        api.compute_instance_id(found.handle, &found.compute_instance) != kNvmlSuccess) {
      continue;
    }
    found.uuid = ReadUuid(api, found.handle);
    instances.push_back(std::move(found));
  }
  return instances;
}

}  // namespace epochmeter::collect::nvml
