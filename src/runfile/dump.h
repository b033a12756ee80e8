// SPDX-License-Identifier: Apache-2.0
// A run file as text and back: Assemble(Dump(bytes)) == bytes for any bytes, damaged ones included.
// Both take one file (main or tail). The text is described in FORMAT.md, "Text form".
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace epochmeter::runfile {

// Frames whose content is understood are one record a line; others and damaged ranges are hex.
std::string Dump(std::string_view file_bytes);

// Fails with the line number on text that Dump would not write.
base::Result<std::string> Assemble(std::string_view text);

}  // namespace epochmeter::runfile
