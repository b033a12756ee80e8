// SPDX-License-Identifier: Apache-2.0
// What the golden run files in tests/fixtures hold, one of every released version of the format.
// Never changed: files of that content are with users.
#pragma once

#include <vector>

#include "model/record.h"

namespace epochmeter::runfile {

// Every type of record, column and field. `ticks` is 50 in a file that ended and 65 in one that was
// being written, with 25 ticks in each chunk set and the rest in its tail.
std::vector<model::Record> GoldenRecords(int ticks);
model::RunEnd GoldenEnd();

}  // namespace epochmeter::runfile
