// SPDX-License-Identifier: Apache-2.0
// Names in front of their numbers: "epoch, loss, acc: 1, 0.5, 0.9", "loss/acc: 0.5/0.9". Pure; any
// thread. Runs once for every new kind of line.
#pragma once

#include <string_view>

#include "ingest/log/field_scanner.h"

namespace epochmeter::ingest::log {

// Gives each number of such a list its own name, where there are as many names as numbers. `line`
// is what ScanFields found in `text`; keys point to nothing of it.
void NameLists(std::string_view text, ScannedLine* line);

}  // namespace epochmeter::ingest::log
