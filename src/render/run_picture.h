// SPDX-License-Identifier: Apache-2.0
// Pictures of a run as SVG: the trend of its GPUs, or one figure by name. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/report.h"
#include "model/run.h"
#include "render/phrases.h"
#include "render/run_axis.h"

namespace epochmeter::render {

struct PictureOptions {
  Language language = Language::kEnglish;
  PictureX x = PictureX::kTime;
  bool dark = false;
  bool redact = true;  // secrets and home folders in names
};

// What RenderSvg takes: "trend", short names of common figures, "step_time", "data_wait" and
// scalars, then SCOPE.FIELD of each curve. Only what the run has.
std::vector<std::string> PictureNames(const model::Run& run, const model::Report& report);

// `name` is one of PictureNames, or the field of a curve (of the first scope that has it). An
// unknown one is an error that lists them; so is an x that the run has no numbers for.
base::Result<std::string> RenderSvg(const model::Run& run, const model::Report& report,
                                    const std::string& name, const PictureOptions& options);

}  // namespace epochmeter::render
