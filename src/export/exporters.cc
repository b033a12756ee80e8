// SPDX-License-Identifier: Apache-2.0
#include "export/exporters.h"

#include <array>

namespace epochmeter::exporting {

extern const ExporterDef kReportJson;
extern const ExporterDef kReportCsv;
extern const ExporterDef kReportJsonl;
extern const ExporterDef kFindingsCsv;
extern const ExporterDef kSeriesCsv;
extern const ExporterDef kSeriesJsonl;
extern const ExporterDef kBillJson;
extern const ExporterDef kBillCsv;

std::span<const ExporterDef* const> Exporters() {
  static constexpr std::array<const ExporterDef*, 8> kAll = {
      &kReportJson, &kReportCsv,   &kReportJsonl, &kFindingsCsv,
      &kSeriesCsv,  &kSeriesJsonl, &kBillJson,    &kBillCsv};
  return kAll;
}

const ExporterDef* FindExporter(Subject subject, std::string_view name) {
  for (const ExporterDef* def : Exporters()) {
    if (def->subject == subject && def->name == name) return def;
  }
  return nullptr;
}

}  // namespace epochmeter::exporting
