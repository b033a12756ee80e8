// SPDX-License-Identifier: Apache-2.0
// One record as one line of text and back, every bit kept (FORMAT.md, "Text form").
#pragma once

#include <string>
#include <string_view>

#include "model/record.h"

namespace epochmeter::runfile {

// Without the line end.
std::string RecordToText(const model::Record& record);
// False for a line that RecordToText would not write.
bool RecordFromText(std::string_view line, model::Record* record);

std::string HexText(std::string_view bytes);
bool BytesFromHex(std::string_view text, std::string* bytes);

}  // namespace epochmeter::runfile
