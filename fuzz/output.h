// SPDX-License-Identifier: Apache-2.0
// What must hold of everything we print, whatever was read.
#pragma once

#include <string_view>

#include "model/run.h"

namespace epochmeter::fuzz {

// Valid UTF-8 without control characters but line ends; with `color` also escape sequences.
void CheckText(std::string_view text, bool color, bool ascii);
// Parses as JSON; each line of `lines` does.
void CheckJson(std::string_view text);
void CheckJsonLines(std::string_view lines);
// Every row has as many cells as the first one, as RFC 4180 counts them.
void CheckCsv(std::string_view text);
// Columns are in order of time and of equal length; a summary counts what Read gives.
void CheckStore(const model::Run& run);
// The report of the run as text in each language, width and colour, and in every format of
// `report` and `export`.
void CheckAllOutput(const model::Run& run);

}  // namespace epochmeter::fuzz
