// SPDX-License-Identifier: Apache-2.0
// The bill of a run as a few lines of its report.
#pragma once

#include <string>
#include <vector>

#include "model/bill.h"
#include "render/phrases.h"

namespace epochmeter::render {

// GPU time and what it went to, the most first; the effective part of it; energy and cost, each
// with the part of the time that it covers. Empty for a bill without time.
std::vector<std::string> BillItems(const model::Bill& bill, Language language);

}  // namespace epochmeter::render
