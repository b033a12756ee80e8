// SPDX-License-Identifier: Apache-2.0
#include "model/entity_name.h"

#include <optional>
#include <set>

#include "base/strings.h"

namespace epochmeter::model {

std::string_view Find(const Labels& labels, std::string_view key) {
  for (const auto& [name, value] : labels) {
    if (name == key) return value;
  }
  return {};
}

int32_t GpuIndex(const EntityDef& gpu) {
  const std::optional<int64_t> index = base::ParseInt(Find(gpu.labels, "gpu"));
  return index && *index >= 0 && *index < 4096 ? static_cast<int32_t>(*index) : -1;
}

std::string EntityName(const EntityDef& entity) {
  if (entity.scope == Scope::kGpu && GpuIndex(entity) >= 0) {
    return "gpu" + std::to_string(GpuIndex(entity));
  }
  const std::string_view rank = Find(entity.labels, "rank");
  if (entity.scope == Scope::kRank && !rank.empty()) return "rank" + std::string(rank);
  return entity.name;
}

std::vector<std::string> UniqueEntityNames(const std::vector<EntityDef>& entities) {
  std::set<std::string> taken;
  std::vector<std::string> names;
  names.reserve(entities.size());
  for (const EntityDef& entity : entities) {
    std::string name = EntityName(entity);
    const std::string_view device = Find(entity.labels, "device");
    if (!device.empty() && taken.count(name) > 0) name += " device " + std::string(device);
    while (!taken.insert(name).second) name += " #" + std::to_string(names.size());
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace epochmeter::model
