// SPDX-License-Identifier: Apache-2.0
// Report -> GitHub-flavoured Markdown, for issues, CI comments and notebooks. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "model/report.h"
#include "model/run.h"
#include "render/text.h"

namespace epochmeter::render {

// `text` so that Markdown shows it as it is: no markup, no HTML, no link, no mention, no line end,
// no end of a table cell. Control characters become '?'.
std::string MarkdownText(std::string_view text);
// The text as code in a line; its back-ticks can't end it.
std::string MarkdownCode(std::string_view text);

// Verdict, key figures, findings with what to type, epochs. `width` and `ascii` do not count.
std::string RenderMarkdown(const model::Run& run, const model::Report& report,
                           const TextOptions& options);

}  // namespace epochmeter::render
