// SPDX-License-Identifier: Apache-2.0
// What leads a page, what a page folds, and what no name in a run can do to it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "render/bars.h"
#include "render/columns.h"
#include "render/epoch_fold.h"
#include "render/figure_words.h"
#include "render/finding_text.h"
#include "render/markdown.h"
#include "render/run_table.h"
#include "render/text.h"
#include "tiny_findings.h"
#include "tiny_run.h"

namespace epochmeter {
namespace {

using model::Finding;
using model::Report;
using model::Severity;
using render::Language;

bool Has(const std::string& text, std::string_view word) {
  return text.find(word) != std::string::npos;
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Epochs of many ranks; one of them is slow, one waits, one has lost its loss.
Report LongReport(int ranks, int epochs) {
  Report report;
  for (int rank = 0; rank < ranks; ++rank) {
    for (int epoch = 0; epoch < epochs; ++epoch) {
      model::EpochRow row;
      row.rank = rank;
      row.epoch = epoch;
      row.complete = true;
      row.duration_s = epoch == 0 ? 50 : 10;
      row.data_wait_ratio = 0.01;
      row.scalars = {{"loss", 0.5}};
      report.epochs.push_back(row);
    }
  }
  report.epochs[std::min(report.epochs.size() / 2 + 1, report.epochs.size() - 1)].duration_s = 33;
  report.epochs[report.epochs.size() / 3].data_wait_ratio = 0.77;
  report.epochs[report.epochs.size() / 4].scalars = {{"loss", NAN}};
  return report;
}

TEST(Bar, IsOfItsWidthWhateverTheRatio) {
  for (const double ratio :
       {0.0, 0.001, 0.3, 0.99, 1.0, 7.0, -1.0, double{NAN}, double{INFINITY}}) {
    for (const bool ascii : {false, true}) {
      const render::Bar bar = render::MakeBar(ratio, 20, ascii);
      EXPECT_EQ(render::DisplayWidth(bar.filled + bar.rest), 20U) << ratio;
    }
  }
  EXPECT_EQ(render::MakeBar(0.5, 8, true).filled, "####");
  EXPECT_EQ(render::MakeBar(0.5625, 8, false).filled, "████▌");
  EXPECT_EQ(render::MakeBar(NAN, 8, true).filled, "");
}

TEST(Wrap, BreaksFullWidthTextBetweenItsSignsAndNotBeforeAComma) {
  const auto lines = render::Wrap("显存耗尽，共一百", 9, "", "");
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0], "显存耗");
  EXPECT_EQ(lines[1], "尽，共一");
  EXPECT_EQ(lines[2], "百");
  EXPECT_EQ(render::Wrap("第 12345 步结束", 8, "", "").front(), "第 12345");
}

TEST(NamedFigure, SaysTheUnitThatItsNameHas) {
  EXPECT_EQ(render::NamedFigure("first_bytes", 60e9, Language::kEnglish), "first 60.0 GB");
  EXPECT_EQ(render::NamedFigure("p50_s", 0.02, Language::kEnglish), "p50 20 ms");
  EXPECT_EQ(render::NamedFigure("data_wait_ratio", 0.38, Language::kEnglish), "data wait 38 %");
  EXPECT_EQ(render::NamedFigure("growth_bytes_per_step", 2e6, Language::kEnglish),
            "growth 2.0 MB/step");
  EXPECT_EQ(render::NamedFigure("ratio", 0.5, Language::kEnglish), "ratio 50 %");
  EXPECT_EQ(render::NamedFigure("steps", 12, Language::kEnglish), "steps 12");
  EXPECT_EQ(render::NamedFigure("first_bytes", NAN, Language::kEnglish), "first nan");
}

TEST(Verdict, LeadsWithTheWorstFindingAndItsFirstChange) {
  const model::Run run;
  Report report;
  report.findings = testing::TinyFindings();
  render::Verdict verdict = render::VerdictOf(run, report, Language::kEnglish);
  EXPECT_EQ(verdict.severity, Severity::kCritical);
  ASSERT_TRUE(verdict.advice);
  EXPECT_EQ(render::FirstAdvice(verdict, Language::kEnglish),
            "PyTorch: Let the allocator grow its segments.");
  report.framework = "paddle";
  verdict = render::VerdictOf(run, report, Language::kChinese);
  EXPECT_EQ(render::FirstAdvice(verdict, Language::kChinese), "按需分配。");
  report.framework = "tensorflow";
  verdict = render::VerdictOf(run, report, Language::kEnglish);
  EXPECT_EQ(render::FirstAdvice(verdict, Language::kEnglish), "Halve the batch.");
  EXPECT_EQ(render::FirstCode(verdict), "");
}

TEST(Advice, WithTheSameWordsForAllIsSaidOnce) {
  Finding finding;
  const model::Message text = {"Do it.", "做。"};
  finding.advice = {{.framework = "paddle", .text = text, .code = "a"},
                    {.framework = "pytorch", .text = text, .code = "b"}};
  const auto groups = render::GroupAdvice(finding, "");
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].frameworks, "");
  EXPECT_EQ(groups[0].with_code.size(), 2U);
  ASSERT_EQ(render::GroupAdvice(finding, "paddle").size(), 1U);
  EXPECT_EQ(render::GroupAdvice(finding, "paddle")[0].with_code[0]->code, "a");
  EXPECT_TRUE(render::GroupAdvice(finding, "tensorflow").empty());
  finding.advice[1].text = {"Do that.", "做那个。"};
  EXPECT_EQ(render::GroupAdvice(finding, "")[1].frameworks, "PyTorch");
}

TEST(Verdict, IsNotGoodWhereTheTrainingFailedOrNothingWasSeen) {
  model::Run run;
  Report report;
  EXPECT_FALSE(render::VerdictOf(run, report, Language::kEnglish).good);
  report.epochs.emplace_back();
  EXPECT_TRUE(render::VerdictOf(run, report, Language::kEnglish).good);
  model::Event raised;
  raised.kind = model::EventKind::kException;
  raised.name = "ValueError";
  run.events.push_back(raised);
  const render::Verdict verdict = render::VerdictOf(run, report, Language::kEnglish);
  EXPECT_FALSE(verdict.good);
  EXPECT_TRUE(Has(verdict.text, "ValueError"));
  run.end = model::RunEnd{.t_ns = 1, .reason = "exited", .exit_code = 3, .signal = {}};
  EXPECT_TRUE(Has(render::VerdictOf(run, report, Language::kEnglish).text, "exit code 3"));
  EXPECT_EQ(render::VerdictOf(run, report, Language::kEnglish).severity, Severity::kCritical);
}

TEST(EpochFold, KeepsFirstLastAndWorstOfThousandsAndCountsTheRest) {
  const Report report = LongReport(100, 50);
  const std::vector<size_t> kept = render::KeptRows(report.epochs, false);
  EXPECT_LE(kept.size(), 40U);
  for (const size_t wanted : {size_t{0}, size_t{4999}, size_t{2501}, size_t{1666}, size_t{1250}}) {
    EXPECT_TRUE(std::find(kept.begin(), kept.end(), wanted) != kept.end()) << wanted;
  }
  EXPECT_EQ(render::KeptRows(report.epochs, true).size(), 5000U);
  const std::string text = render::RenderReport({}, report, {});
  EXPECT_LT(LinesOf(text).size(), 80U);
  size_t left_out = 0;
  for (const std::string& line : LinesOf(text)) {
    if (Has(line, "more (--all-epochs)")) left_out += std::stoul(line.substr(line.find("…") + 3));
  }
  EXPECT_EQ(left_out + kept.size(), 5000U);
}

TEST(Summary, FitsAScreenOf24LinesAnd80ColumnsWhateverTheRunIs) {
  const model::Run run = testing::TinyRun();
  for (const Language language : {Language::kEnglish, Language::kChinese}) {
    for (const int ranks : {0, 1, 10000}) {
      Report report = testing::TinyReport(run, true);
      if (ranks > 0) report.epochs = LongReport(ranks, 2).epochs;
      for (int i = 0; i < 30; ++i)
        report.findings.insert(report.findings.begin(), report.findings[0]);
      render::TextOptions options;
      options.width = 80;
      options.language = language;
      options.files = {"run.emr"};
      const std::vector<std::string> lines = LinesOf(render::RenderSummary(run, report, options));
      EXPECT_LE(lines.size(), 23U) << ranks;
      for (const std::string& line : lines) EXPECT_LE(render::DisplayWidth(line), 80U) << line;
    }
  }
}

TEST(Summary, IsOneLineWithTheVerdictAtItsEnd) {
  const model::Run run = testing::TinyRun();
  const std::string line = render::RenderLine(run, testing::TinyReport(run, false), {});
  EXPECT_EQ(LinesOf(line).size(), 1U);
  EXPECT_TRUE(Has(line, "CRITICAL: rank0 asked for 2.0 GB")) << line;
}

TEST(Findings, TellRulesThatCouldNotJudgeOneByOneWhereAsked) {
  Report report;
  report.findings = testing::TinyFindings();
  render::TextOptions options;
  EXPECT_FALSE(Has(render::RenderReport({}, report, options), "no source of XIDs"));
  options.all_rules = true;
  EXPECT_TRUE(Has(render::RenderReport({}, report, options), "xid_error: no source of XIDs"));
  EXPECT_TRUE(Has(render::RenderMarkdown({}, report, options), "`xid_error`: no source of XIDs"));
}

TEST(Findings, AreColouredOnlyWhereColourIsWanted) {
  Report report;
  report.findings = testing::TinyFindings();
  render::TextOptions options;
  EXPECT_FALSE(Has(render::RenderReport({}, report, options), "\033["));
  options.color = true;
  EXPECT_TRUE(Has(render::RenderReport({}, report, options), "\033[1;31mCRITICAL\033[0m"));
}

// A finding whose every text tries something.
Finding HostileFinding() {
  const std::string evil = "</script>\033[2J\n# a | b `c` [x](http://e) @you www.e.com <img src=x>";
  Finding finding;
  finding.rule = "a_rule";
  finding.severity = Severity::kCritical;
  finding.title = finding.summary = finding.explanation = {evil, evil};
  finding.advice = {{.framework = evil, .text = {evil, evil}, .code = "```\nrm -rf\033[2J"}};
  finding.evidence = {{.series = evil, .values = {{evil, NAN}}, .note = {evil, evil}}};
  finding.lost_gpu_s = INFINITY;
  finding.gain_ratio = NAN;
  return finding;
}

TEST(Findings, LetNoTextSteerATerminalOrAPage) {
  Report report;
  report.findings = {HostileFinding()};
  model::EpochRow row;
  row.scalars = {{"lo|ss<b>", 1.0}};
  report.epochs = {row};
  const std::string text = render::RenderReport({}, report, {});
  EXPECT_FALSE(Has(text, "\033")) << text;
  const std::string page = render::RenderMarkdown({}, report, {});
  for (const char* evil : {"\033", "</script>", "<img", "\n# a", " [x](", "@you", "://", "www.e"}) {
    EXPECT_FALSE(Has(page, evil)) << evil << "\n" << page;
  }
  EXPECT_TRUE(Has(page, "\n  ````\n  ```\n")) << page;
  EXPECT_TRUE(Has(page, "lo\\|ss&lt;b&gt;")) << page;
}

std::vector<model::RunRow> Rows() {
  model::RunRow good;
  good.path = "runs/a.emr";
  good.name = "a | b\033[2J";
  good.state = "exit 0";
  good.duration_s = 60;
  good.gpus = 2;
  good.gpu_model = "NVIDIA H200";
  good.utilization_ratio = 0.5;
  good.gpu_s = 120;
  good.waste_gpu_s = 60;
  good.worst_rule = "data_starvation";
  good.worst_severity = Severity::kWarning;
  good.worst_title = {"The training waits", "训练在等待"};
  model::RunRow bad;
  bad.path = "runs/b.emr";
  bad.error = "no valid header";
  return {good, bad};
}

TEST(RunTable, TellsWhatItCanNotRead) {
  const model::RunProfile profile{
      .name = "a", .runs = 1, .figures = {{.field = "gpus", .runs = 1, .p50 = 2, .p95 = 2}}};
  const std::string text = render::RenderRuns(Rows(), {profile}, {});
  EXPECT_TRUE(Has(text, "1 runs, 0.033 GPU-h, 0.017 GPU-h of it brought nothing")) << text;
  EXPECT_TRUE(Has(text, "2 × NVIDIA H200")) << text;
  EXPECT_TRUE(Has(text, "WARNING The training waits")) << text;
  EXPECT_TRUE(Has(text, "Not readable\n  runs/b.emr: no valid header\n")) << text;
  EXPECT_FALSE(Has(text, "\033")) << text;
  render::TextOptions chinese;
  chinese.language = Language::kChinese;
  EXPECT_TRUE(Has(render::RenderRuns(Rows(), {profile}, chinese), "警告 训练在等待"));
}

TEST(RunTable, OfNothingReadableIsNoTable) {
  const std::string text = render::RenderRuns({Rows()[1]}, {}, {});
  EXPECT_TRUE(Has(text, "0 runs")) << text;
  EXPECT_TRUE(Has(text, "runs/b.emr: no valid header")) << text;
}

TEST(RunTable, KeepsACellOfMarkdownInItsCell) {
  const std::string page = render::RenderRunsMarkdown(Rows(), {}, {});
  EXPECT_TRUE(Has(page, "| a \\| b?\\[2J |")) << page;
}

TEST(Markdown, EscapesWhatBeginsAListOrAHeading) {
  EXPECT_EQ(render::MarkdownText("- a - b"), "\\- a - b");
  EXPECT_EQ(render::MarkdownText("12. x 3. y"), "12\\. x 3. y");
  EXPECT_EQ(render::MarkdownText("a_b*c"), "a\\_b\\*c");
  EXPECT_EQ(render::MarkdownCode("a`b"), "``a`b``");
}

}  // namespace
}  // namespace epochmeter
