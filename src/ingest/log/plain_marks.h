// SPDX-License-Identifier: Apache-2.0
// Wide punctuation as the ASCII one. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace epochmeter::ingest::log {

// Symbols and glyphs become spaces; each character keeps its bytes, so that offsets stay.
std::string PlainMarks(std::string_view text);

}  // namespace epochmeter::ingest::log
