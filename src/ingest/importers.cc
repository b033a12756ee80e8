// SPDX-License-Identifier: Apache-2.0
#include "ingest/importers.h"

#include <array>

#include "ingest/allocator.h"

namespace epochmeter::ingest {

std::span<const ImporterDef> Importers() {
  static const std::array<ImporterDef, 1> kList = {
      kRecordingImporter,
  };
  return kList;
}

const ImporterDef* FindImporter(std::string_view name) {
  for (const ImporterDef& importer : Importers()) {
    if (importer.name == name) return &importer;
  }
  return nullptr;
}

std::span<const model::MetricDef> ClientMetrics() { return AllocatorMetrics(); }

}  // namespace epochmeter::ingest
