// SPDX-License-Identifier: Apache-2.0
#include "diagnose/rules.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

#include "diagnose/limits.h"
#include "diagnose/test_run.h"

namespace epochmeter::diagnose {
namespace {

TEST(Rules, HaveIdsOfTheirOwnAndTitlesInEachLanguage) {
  std::set<std::string_view> ids;
  std::set<std::string> titles;
  for (const RuleDef* rule : Rules()) {
    EXPECT_TRUE(ids.insert(rule->id).second) << rule->id;
    EXPECT_EQ(rule->id.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string_view::npos)
        << rule->id;
    const model::Message title = rule->Title();
    EXPECT_FALSE(title.en.empty()) << rule->id;
    EXPECT_FALSE(title.zh.empty()) << rule->id;
    EXPECT_NE(title.en, title.zh) << rule->id;
    EXPECT_TRUE(titles.insert(title.en).second) << title.en;
  }
}

TEST(Rules, LimitsStandInOrderWithUnitAndSource) {
  std::string_view before;
  for (const LimitDef& limit : LimitTable()) {
    EXPECT_LT(before, limit.id);
    EXPECT_FALSE(limit.unit.empty()) << limit.id;
    EXPECT_GT(limit.source.size(), 10U) << limit.id;
    EXPECT_NE(limit.id.find('.'), std::string_view::npos) << limit.id;
    before = limit.id;
  }
}

TEST(Rules, JudgeARunOfNothingWithoutAWarning) {
  TestRun run(0);
  for (const model::Finding& finding : EvaluateRules(Rules(), run.Finish())) {
    EXPECT_EQ(finding.severity, model::Severity::kNotApplicable) << finding.rule;
    EXPECT_FALSE(finding.summary.en.empty()) << finding.rule;
    EXPECT_FALSE(finding.summary.zh.empty()) << finding.rule;
  }
}

Judgement Well(const Facts&) { return {}; }
Judgement Unable(const Facts&) { return NotApplicable({.en = "no figures", .zh = "没有数据"}); }
Judgement Finds(const Facts&) {
  Judgement judgement;
  judgement.findings.resize(2);
  return judgement;
}
model::Message NoTitle() { return {.en = "title", .zh = "标题"}; }

TEST(Rules, ThatJudgedAreNamedWhetherTheyFoundAnythingOrNot) {
  const RuleDef well{.id = "well", .Title = NoTitle, .Judge = Well};
  const RuleDef unable{.id = "unable", .Title = NoTitle, .Judge = Unable};
  const RuleDef finds{.id = "finds", .Title = NoTitle, .Judge = Finds};
  const auto rules = std::to_array<const RuleDef*>({&well, &unable, &finds});
  TestRun run(0);
  EXPECT_EQ(RulesJudged(rules, EvaluateRules(rules, run.Finish())),
            (std::vector<std::string>{"well", "finds"}));
}

TEST(Rules, SayEverythingInBothLanguages) {
  TestRun run(60);
  run.Train({.data_wait_s = [](int) { return 0.08; },
             .loss = [](int step) { return step < 200 ? 1.0 : 1.0 / 0.0; }});
  const std::vector<model::Finding> findings = EvaluateRules(Rules(), run.Finish());
  EXPECT_FALSE(findings.empty());
  for (const model::Finding& finding : findings) {
    EXPECT_EQ(finding.summary.en.empty(), finding.summary.zh.empty()) << finding.rule;
    EXPECT_EQ(finding.explanation.en.empty(), finding.explanation.zh.empty()) << finding.rule;
    for (const model::Advice& advice : finding.advice) {
      EXPECT_FALSE(advice.text.zh.empty()) << finding.rule;
    }
  }
}

}  // namespace
}  // namespace epochmeter::diagnose
