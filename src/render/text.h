// SPDX-License-Identifier: Apache-2.0
// Report -> plain text for terminals, 80 to 120 columns. Any thread.
#pragma once

#include <string>
#include <vector>

#include "model/report.h"
#include "model/run.h"
#include "render/phrases.h"

namespace epochmeter::render {

struct TextOptions {
  Language language = Language::kEnglish;
  bool color = false;
  bool live = false;   // the run is still being recorded
  bool ascii = false;  // for terminals without UTF-8
  size_t width = 100;  // what is wider is cut at the command and the reasons, never in the tables
  std::vector<std::string> files;  // named at the foot: the run file and what lies beside it
};

// A page: header, epochs, GPUs, losses, what was not measured, files.
std::string RenderReport(const model::Run& run, const model::Report& report,
                         const TextOptions& options);
// A few lines: header, the run's own figures, the last epoch of each rank, how many kinds of losses
// and of reasons why something was not measured.
std::string RenderSummary(const model::Run& run, const model::Report& report,
                          const TextOptions& options);

}  // namespace epochmeter::render
