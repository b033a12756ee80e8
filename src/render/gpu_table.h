// SPDX-License-Identifier: Apache-2.0
// The GPUs over the whole run, a row each.
#pragma once

#include "render/page.h"

namespace epochmeter::render {

void AddGpuTable(const model::Run& run, const model::Report& report, Page* page);

}  // namespace epochmeter::render
