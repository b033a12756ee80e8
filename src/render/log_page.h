// SPDX-License-Identifier: Apache-2.0
// What a training log comes to, as a page for a terminal.
#pragma once

#include <string>

#include "model/log_report.h"
#include "render/text.h"

namespace epochmeter::render {

std::string RenderLog(const model::LogReport& report, const TextOptions& options);

}  // namespace epochmeter::render
