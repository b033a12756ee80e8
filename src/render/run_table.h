// SPDX-License-Identifier: Apache-2.0
// Many runs in one table, and the profiles of their kinds. Any thread.
#pragma once

#include <string>
#include <vector>

#include "model/run_row.h"
#include "render/text.h"

namespace epochmeter::render {

// The table in the order given, runs that can't be read with the reason, sums, and the profiles of
// the kinds that have most runs.
std::string RenderRuns(const std::vector<model::RunRow>& rows,
                       const std::vector<model::RunProfile>& profiles, const TextOptions& options);
// The same as Markdown tables; `width` and `ascii` do not count.
std::string RenderRunsMarkdown(const std::vector<model::RunRow>& rows,
                               const std::vector<model::RunProfile>& profiles,
                               const TextOptions& options);

}  // namespace epochmeter::render
