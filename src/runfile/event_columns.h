// SPDX-License-Identifier: Apache-2.0
// Events in columns (FORMAT.md, "Events"): a step costs some 10 to 15 bytes instead of 100.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/record.h"

namespace epochmeter::runfile {

// Not compressed yet. At most kMaxColumnValues events; none gives an empty string.
std::string EncodeEvents(const std::vector<model::Event>& events);
// The events in order, with every key, type and bit; false for bytes that are not that.
bool DecodeEvents(std::string_view bytes, std::vector<model::Event>* events);

}  // namespace epochmeter::runfile
