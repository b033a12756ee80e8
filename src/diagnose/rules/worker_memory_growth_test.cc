// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "diagnose/rules/all.h"
#include "diagnose/test_host.h"
#include "diagnose/test_memory.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kWorkerMemoryGrowth;
constexpr double kMB = 1e6;
double Flat(double) { return 3e9; }
double Four(double) { return 4; }

// Four workers beside a main process that stays as it is; `each` is the memory of one.
std::vector<model::Finding> JudgeEach(const LevelAt& each, const LevelAt& anon = {}) {
  TestRun run(60);
  AddWorkers(run, 0,
             {.main_rss = Flat,
              .workers = Four,
              .worker_rss = [&](double t_s) { return 4 * each(t_s); },
              .worker_anon = anon});
  run.Train({});
  return run.Judge(kRule);
}

TEST(WorkerMemoryGrowth, FiresWhereEachWorkerGrowsAndTheParentDoesNot) {
  const auto findings = JudgeEach([](double t_s) { return 400 * kMB + 10 * kMB * t_s; });
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].rank, 0);
  EXPECT_EQ(ValueOf(findings[0], "workers"), 4);
  EXPECT_GT(ValueOf(findings[0], "growth_bytes"), 800 * kMB);
  EXPECT_EQ(ValueOf(findings[0], "main_growth_bytes"), 0);
}

TEST(WorkerMemoryGrowth, WhatLevelsOffIsNone) {
  EXPECT_EQ(SeverityOf(JudgeEach(
                [](double t_s) { return 400 * kMB + 900 * kMB * (1 - std::exp(-t_s / 8)); })),
            "none");
}

TEST(WorkerMemoryGrowth, WorkersThatStartAnewEachEpochAreNone) {
  EXPECT_EQ(SeverityOf(JudgeEach([](double t_s) {
              return 400 * kMB + 60 * kMB * std::fmod(std::max(t_s - 1.5, 0.0), 10);
            })),
            "none");
}

TEST(WorkerMemoryGrowth, PagesOfAMappedDataSetAreNone) {
  EXPECT_EQ(SeverityOf(JudgeEach([](double t_s) { return 400 * kMB + 10 * kMB * t_s; },
                                 [](double) { return 900 * kMB; })),
            "none");
}

TEST(WorkerMemoryGrowth, AParentThatGrowsAsMuchIsNotTheWorkers) {
  TestRun run(60);
  AddWorkers(run, 0,
             {.main_rss = [](double t_s) { return 3e9 + 1e8 * t_s; },
              .workers = Four,
              .worker_rss = [](double t_s) { return 2e9 + 4e7 * t_s; }});
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(WorkerMemoryGrowth, MoreWorkersAreNoGrowth) {
  TestRun run(60);
  const auto count = [](double t_s) { return t_s < 20 ? 2.0 : 8.0; };
  AddWorkers(run, 0, {.main_rss = Flat, .workers = count, .worker_rss = [&](double t_s) {
                        return count(t_s) * 400 * kMB;
                      }});
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(WorkerMemoryGrowth, CannotJudgeWithTheTreeAloneOrWithoutWorkers) {
  TestRun tree(60);
  AddTree(tree, {.rss = [](double t_s) { return 3e9 + 1e8 * t_s; }});
  tree.Train({});
  EXPECT_NE(tree.NotApplicableReason(kRule), "");
  TestRun none(60);
  AddWorkers(none, 0,
             {.main_rss = Flat,
              .workers = [](double) { return 0.0; },
              .worker_rss = [](double) { return 0.0; }});
  none.Train({});
  EXPECT_NE(none.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
