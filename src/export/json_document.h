// SPDX-License-Identifier: Apache-2.0
// What every JSON document of ours begins and ends with.
#pragma once

#include <string>
#include <vector>

#include "base/json_writer.h"

namespace epochmeter::exporting {

// Opens the object: "schema_version" and "tool" with its name, version and revision.
void BeginDocument(int schema_version, base::JsonWriter& json);
// Adds "warnings" and closes the object.
void EndDocument(const std::vector<std::string>& warnings, base::JsonWriter& json);

}  // namespace epochmeter::exporting
