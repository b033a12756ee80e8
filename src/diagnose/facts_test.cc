// SPDX-License-Identifier: Apache-2.0
#include "diagnose/facts.h"

#include <gtest/gtest.h>

#include "diagnose/test_run.h"

namespace epochmeter::diagnose {
namespace {

TEST(Facts, TheFirstEpochAndFirstStepsOfEpochsAreWarmUp) {
  TestRun run(60);
  run.Train({.epochs = 3, .steps = 20});
  const Facts& facts = run.Finish();
  ASSERT_EQ(facts.ranks().size(), 1U);
  const RankFacts& rank = facts.ranks()[0];
  ASSERT_EQ(rank.steps.size(), 60U);
  for (size_t i = 0; i < 60; ++i) EXPECT_EQ(rank.steps[i].warm_up, i <= 20 || i == 40) << i;
  EXPECT_EQ(rank.steady.size(), 2U);
  EXPECT_NEAR(rank.SteadySeconds(), 3.8, 1e-6);
  EXPECT_EQ(rank.framework, "pytorch");
  EXPECT_TRUE(rank.ended);
}

TEST(Facts, OneEpochIsJudgedAfterItsFirstSteps) {
  TestRun run(60);
  run.Train({.epochs = 1, .steps = 100});
  const RankFacts& rank = run.Finish().ranks().at(0);
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(rank.steps[i].warm_up, i < 10) << i;
}

TEST(Facts, EvaluationIsNotSteady) {
  TestRun run(60);
  run.Train({.epochs = 3, .steps = 20, .eval_s = 1});
  const RankFacts& rank = run.Finish().ranks().at(0);
  ASSERT_EQ(rank.phases.size(), 3U);
  EXPECT_EQ(rank.phases[0].name, "eval");
  EXPECT_FALSE(rank.phases[0].open);
  EXPECT_NEAR(rank.SteadySeconds(), 3.8, 1e-6);
}

TEST(Facts, SubtractCutsHolesOut) {
  const auto left = Subtract({.begin_ns = 0, .end_ns = 100},
                             {{.begin_ns = 90, .end_ns = 120}, {.begin_ns = 10, .end_ns = 20}});
  ASSERT_EQ(left.size(), 2U);
  EXPECT_EQ(left[0].end_ns, 10);
  EXPECT_EQ(left[1].begin_ns, 20);
  EXPECT_EQ(left[1].end_ns, 90);
}

}  // namespace
}  // namespace epochmeter::diagnose
