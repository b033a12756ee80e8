// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "render/hostile_run.h"
#include "render/log_page.h"
#include "render/markdown.h"
#include "render/text.h"

namespace epochmeter::render {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kSaid =
    "cannot open /home/ann/set/x with password: correct-horse-battery of ann";

MadeRun RunThatRaised() {
  MadeRun made(10);
  made.run.events.push_back({.t_ns = made.run.span.begin_ns,
                             .kind = model::EventKind::kException,
                             .name = "OSError",
                             .fields = {{.key = "message", .value = std::string(kSaid)}}});
  return made;
}

model::LogReport LogThatFailed() {
  model::LogReport report;
  report.files.emplace_back();
  report.files.front().name = "train.log";
  report.cause.emplace();
  report.cause->kind = "exception";
  // Cut in the midst of the secret, were it cut first.
  report.cause->text = std::string(240, 'x') + " " + std::string(kSaid);
  model::LogEventRow event;
  event.kind = "exception";
  event.count = 1;
  event.lines = {3};
  event.text = kSaid;
  report.events.push_back(event);
  model::LogTemplate row;
  row.count = 9;
  row.text = kSaid;
  report.messages.templates.push_back(row);
  return report;
}

TEST(Redaction, TextAndMarkdownOfARunAreAsItsPage) {
  const MadeRun made = RunThatRaised();
  for (const auto& Render : {RenderReport, RenderSummary, RenderLine, RenderMarkdown}) {
    // Narrow, so that name and value of the secret stand on two lines.
    for (const size_t width : {60, 70, 200}) {
      const std::string page = Render(made.run, made.report, {.width = width});
      EXPECT_THAT(page, HasSubstr("OSError"));
      EXPECT_THAT(page, Not(HasSubstr("correct")));
      EXPECT_THAT(page, Not(HasSubstr("/home")));
    }
    EXPECT_THAT(Render(made.run, made.report, {.width = 300, .redact = false}),
                HasSubstr("/home/ann/set/x with password: correct"));
  }
}

TEST(Redaction, LinesOfALogToo) {
  const model::LogReport report = LogThatFailed();
  for (const size_t width : {60, 70, 200}) {
    const std::string page = RenderLog(report, {.width = width});
    EXPECT_THAT(page, HasSubstr("~/set/x"));
    EXPECT_THAT(page, Not(HasSubstr("correct")));
    EXPECT_THAT(page, Not(HasSubstr("/home")));
  }
  EXPECT_THAT(RenderLog(report, {.width = 300, .redact = false}), HasSubstr("correct-horse"));
}

}  // namespace
}  // namespace epochmeter::render
