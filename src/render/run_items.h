// SPDX-License-Identifier: Apache-2.0
// What went wrong around a training and in its recording, an item each, as lists show it.
#pragma once

#include <string>
#include <vector>

#include "model/report.h"
#include "model/run.h"
#include "render/phrases.h"

namespace epochmeter::render {

// What the training raised: the first of each type, with its count over all ranks.
std::vector<std::string> ExceptionItems(const model::Run& run, Language language);
// What went wrong around the training, with the time since its start.
std::vector<std::string> IncidentItems(const model::Run& run, const model::Report& report,
                                       Language language);
// Losses of one kind as one: their counts summed, the words of the first.
std::vector<std::string> LossItems(const model::Run& run, Language language);

}  // namespace epochmeter::render
