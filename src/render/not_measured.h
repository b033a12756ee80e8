// SPDX-License-Identifier: Apache-2.0
// What a run could not tell, as items of a list.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/report.h"
#include "render/phrases.h"

namespace epochmeter::render {

// What is missing for each reason, both in the order of first mention; never an empty group. The
// entries are the report's.
std::vector<std::vector<const model::NotMeasured*>> ByReason(const model::Report& report);

// One item for each reason, what is missed most first; long lists of names are cut with a count.
std::vector<std::string> NotMeasuredItems(const model::Report& report, Language language);

}  // namespace epochmeter::render
