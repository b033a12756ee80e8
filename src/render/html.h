// SPDX-License-Identifier: Apache-2.0
// A run as one file for a browser, which asks no network: docs/design/0005-report-page.md.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/report.h"
#include "model/run.h"
#include "render/page_payload.h"

namespace epochmeter::render {

inline constexpr uint64_t kPageBytes = 2'000'000;  // default of max_bytes

// Curves and steps are thinned, then lines of output and steps of ranks left out, until the page
// has at most `max_bytes`; the page says so. Fails when even the rest is larger.
base::Result<std::string> RenderHtml(const model::Run& run, const model::Report& report,
                                     const PageOptions& options, uint64_t max_bytes = kPageBytes);

// web/dist/report.html as it was when the program was built.
std::string_view PageTemplate();

}  // namespace epochmeter::render
