// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "diagnose/rules/all.h"
#include "diagnose/test_host.h"
#include "diagnose/test_memory.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kHostMemoryPressure;

TEST(HostMemoryPressure, FiresWhereTheMachineIsFull) {
  TestRun run(60);
  AddHostMemory(run, 64e9, [](double t_s) { return t_s < 40 ? 20e9 : 62e9; });
  run.Train({});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_NEAR(ValueOf(findings[0], "used_ratio"), 62.0 / 64, 1e-9);
}

TEST(HostMemoryPressure, ALimitOfTheJobCountsWithItsSharedMemory) {
  TestRun run(60);
  AddHostMemory(run, 256e9, [](double) { return 30e9; });
  AddCgroup(run, {.limit_bytes = 16e9,
                  .anon = [](double) { return 11e9; },
                  .shmem = [](double) { return 4.5e9; }});
  run.Train({});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(ValueOf(findings[0], "limit_bytes"), 16e9);
  EXPECT_EQ(ValueOf(findings[0], "highest_bytes"), 15.5e9);
}

TEST(HostMemoryPressure, PageCacheIsNone) {
  TestRun run(60);
  AddHostMemory(run, 64e9, [](double) { return 8e9; });
  AddCgroup(run, {.limit_bytes = 16e9,
                  .anon = [](double) { return 6e9; },
                  .working_set = [](double) { return 15.9e9; }});
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(HostMemoryPressure, TimeThatTasksWaitForMemoryCounts) {
  TestRun much(60);
  AddPressure(much, 0.15, 0.08);
  much.Train({});
  EXPECT_EQ(SeverityOf(much.Judge(kRule)), "warning");
  TestRun some(60);
  AddPressure(some, 0.03, 0);
  some.Train({});
  EXPECT_EQ(SeverityOf(some.Judge(kRule)), "info");
  TestRun none(60);
  AddPressure(none, 0.0001, 0);
  none.Train({});
  EXPECT_EQ(SeverityOf(none.Judge(kRule)), "none");
}

TEST(HostMemoryPressure, SwappingIsAWarningWhereItIsFelt) {
  const auto judge = [](double faults_per_s) {
    TestRun run(60);
    AddTree(run, {.swapped = [](double) { return 2e9; },
                  .major_faults = [=](double t_s) { return 1000 + faults_per_s * t_s; }});
    run.Train({});
    return SeverityOf(run.Judge(kRule));
  };
  EXPECT_EQ(judge(50), "warning");
  EXPECT_EQ(judge(0), "info");
}

TEST(HostMemoryPressure, FaultsOfAMappedDataSetAreNone) {
  TestRun run(60);
  AddTree(run, {.swapped = [](double) { return 0.0; },
                .major_faults = [](double t_s) { return 500 * t_s; }});
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(HostMemoryPressure, AKilledWorkerIsToldWhereTheTrainingWentOn) {
  TestRun run(60);
  run.Train({});
  run.Event(20, model::EventKind::kProcess, {}, "oom_kill",
            {{"cgroup", "/job"}, {"count", int64_t{1}}, {"where", "job"}});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "warning");
}

TEST(HostMemoryPressure, CannotJudgeWithoutFigures) {
  TestRun run(60);
  run.Train({});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
  TestRun nothing(0);
  EXPECT_NE(nothing.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
