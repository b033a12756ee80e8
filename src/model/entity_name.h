// SPDX-License-Identifier: Apache-2.0
// What people and evidence call the things that have series.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/record.h"

namespace epochmeter::model {

// The value of a label or attribute; empty when absent.
std::string_view Find(const Labels& labels, std::string_view key);

// Index on this host (label gpu) of a GPU entity; -1 when it has none.
int32_t GpuIndex(const EntityDef& gpu);

// "gpu0", "rank1", else the entity's own name: "host", "tree", "disk nvme0n1".
std::string EntityName(const EntityDef& entity);

// The same of each of `entities`; where several have one name, all but the first get their device
// or their id behind it.
std::vector<std::string> UniqueEntityNames(const std::vector<EntityDef>& entities);

}  // namespace epochmeter::model
