// SPDX-License-Identifier: Apache-2.0
#include "export/json_document.h"

#include "base/version.h"

namespace epochmeter::exporting {

void BeginDocument(int schema_version, base::JsonWriter& json) {
  json.BeginObject().Field("schema_version", schema_version);
  json.Key("tool")
      .BeginObject()
      .Field("name", "epochmeter")
      .Field("version", base::kVersion)
      .Field("revision", base::kRevision)
      .EndObject();
}

void EndDocument(const std::vector<std::string>& warnings, base::JsonWriter& json) {
  json.Key("warnings").BeginArray();
  for (const std::string& warning : warnings) json.String(warning);
  json.EndArray().EndObject();
}

}  // namespace epochmeter::exporting
