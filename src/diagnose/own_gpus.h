// SPDX-License-Identifier: Apache-2.0
// Which GPUs a rank uses.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "diagnose/epochs.h"
#include "model/run.h"

namespace epochmeter::diagnose {

// Index on this host (label gpu) of a GPU entity; -1 when it has none.
int32_t GpuIndex(const model::EntityDef& gpu);
// The value of a label or attribute; empty when absent.
std::string_view Find(const model::Labels& labels, std::string_view key);

// The GPUs that the rank's last hello or train_begin with a field "gpus" names, as indexes of GPU
// entities: a number, or a list of UUIDs, PCI bus ids or numbers. Names that match no entity make
// the whole answer unknown. A rank that says nothing has every GPU if it is the only one.
std::optional<std::vector<int32_t>> OwnGpus(const model::Run& run, const RankEvents& rank,
                                            bool only_rank);

}  // namespace epochmeter::diagnose
