// SPDX-License-Identifier: Apache-2.0
// formats/*.json as bytes of the program.
#pragma once

#include <string_view>

namespace epochmeter::ingest::log {

// Every file as kFormatFileMark, its name, a line end and its text, in the order of the names.
std::string_view NamedFormatFiles();
inline constexpr char kFormatFileMark = '\x1e';

}  // namespace epochmeter::ingest::log
