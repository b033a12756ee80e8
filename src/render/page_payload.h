// SPDX-License-Identifier: Apache-2.0
// What the page in web/ shows, as one JSON object: "Payload, version 1" of
// docs/design/0005-report-page.md. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "model/report.h"
#include "model/run.h"
#include "render/phrases.h"

namespace epochmeter::render {

struct PageOptions {
  Language language = Language::kEnglish;  // what it starts in
  std::string_view report_json;            // what `report --format json` prints
  bool redact = true;                      // secrets and home folders, in every text
};

// How much of a run goes into a page. A page that is too large is made again with less.
struct PageLimits {
  int64_t curve_buckets = model::kCurveBuckets;  // each of up to four points
  size_t step_buckets = 2000;                    // of all ranks together
  size_t log_head = 200, log_tail = 1800;        // lines
  size_t line_bytes = 2000;                      // the rest of a line is cut
  size_t events = 2000;
};

std::string PagePayload(const model::Run& run, const model::Report& report,
                        const PageOptions& options, const PageLimits& limits);

}  // namespace epochmeter::render
