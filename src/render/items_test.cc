// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "render/figure_words.h"
#include "render/finding_text.h"
#include "render/not_measured.h"
#include "render/run_items.h"

namespace epochmeter::render {
namespace {

TEST(NotMeasuredItems, SpeakTheLanguageAndFallBackToEnglish) {
  model::Report report;
  report.not_measured = {
      {.subject = "host CPU", .reason = "none", .subject_zh = "主机 CPU", .reason_zh = "没有"},
      {.subject = "gpu0 fan_ratio", .reason = "none", .subject_zh = {}, .reason_zh = "没有"},
      {.subject = "gpu0 power_w", .reason = "refused", .subject_zh = {}, .reason_zh = {}}};
  EXPECT_EQ(NotMeasuredItems(report, Language::kEnglish),
            (std::vector<std::string>{"host CPU; gpu0 fan_ratio: none", "gpu0 power_w: refused"}));
  EXPECT_EQ(NotMeasuredItems(report, Language::kChinese),
            (std::vector<std::string>{"主机 CPU; gpu0 fan_ratio: 没有", "gpu0 power_w: refused"}));
}

TEST(IncidentItems, SpeakTheLanguageAndFallBackToEnglish) {
  model::Report report;
  report.incidents = {
      {.t_ns = 0,
       .epoch = {},
       .gpu = 1,
       .kind = "gpu.lost",
       .text = "GPU is lost",
       .text_zh = "GPU 失联"},
      {.t_ns = 0, .epoch = {}, .gpu = {}, .kind = "x", .text = "words", .text_zh = {}}};
  const model::Run run;
  const std::vector<std::string> items = IncidentItems(run, report, Language::kChinese);
  ASSERT_EQ(items.size(), 2U);
  EXPECT_NE(items[0].find("gpu.lost: GPU 失联"), std::string::npos) << items[0];
  EXPECT_NE(items[1].find("x: words"), std::string::npos) << items[1];
}

TEST(Verdict, CountsTheRulesThatJudged) {
  model::Report report;
  report.epochs.resize(1);
  report.rules_judged = {"gpu_memory_leak", "idle_gpu"};
  const Verdict verdict = VerdictOf(model::Run(), report, Language::kEnglish);
  EXPECT_TRUE(verdict.good);
  EXPECT_EQ(verdict.text, "none of 2 rules found anything to change");
  EXPECT_NE(VerdictOf(model::Run(), report, Language::kChinese).text.find("2 条规则"),
            std::string::npos);
}

TEST(NamedFigure, HasItsNameInTheLanguageWhereThereIsOne) {
  EXPECT_EQ(NamedFigure("first_floor_bytes", 1e9, Language::kEnglish), "first floor 1.0 GB");
  EXPECT_EQ(NamedFigure("first_floor_bytes", 1e9, Language::kChinese), "最初低位 1.0 GB");
  EXPECT_EQ(NamedFigure("limit_step", 364150, Language::kChinese), "到限步 364150");
  EXPECT_EQ(NamedFigure("epoch3_floor_bytes", 1e9, Language::kChinese), "epoch3 floor 1.0 GB");
}

}  // namespace
}  // namespace epochmeter::render
