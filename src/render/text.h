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
  bool live = false;        // the run is still being recorded
  bool ascii = false;       // for terminals without UTF-8
  size_t width = 100;       // text is wrapped there; a table gives up its least important columns
  bool all_epochs = false;  // no epoch is folded away
  bool all_rules = false;   // rules that could not judge are told one by one
  bool redact = true;       // secrets and home folders in foreign text
  std::vector<std::string> files;  // named at the foot: the run file and what lies beside it
};

// A page that leads with the verdict: header, gauges, epochs, GPUs, incidents, findings, bill,
// losses, what was not measured, files.
std::string RenderReport(const model::Run& run, const model::Report& report,
                         const TextOptions& options);
// The short form, 23 lines at most: header, verdict, gauges, last epochs, further findings, and how
// many kinds of losses and of reasons why something was not measured.
std::string RenderSummary(const model::Run& run, const model::Report& report,
                          const TextOptions& options);
// One line with its end, not wrapped: name, end, time, main figures, verdict.
std::string RenderLine(const model::Run& run, const model::Report& report,
                       const TextOptions& options);

}  // namespace epochmeter::render
