// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "diagnose/rules/all.h"
#include "diagnose/test_memory.h"
#include "model/gpu_metrics.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kZombieGpuMemory;
constexpr double kDevice = 80e9;

// A GPU whose driver tells what others hold and what nobody does, by the time; each may be empty.
void AddLists(TestRun& run, const TestRun::ValueAt& others, const TestRun::ValueAt& unexplained) {
  AddDevice(run, 0, kDevice, [](double) { return 20e9; });
  if (others) run.Series(run.Gpu(0), model::gpu::kOthersMemory, 1, others);
  if (unexplained) run.Series(run.Gpu(0), model::gpu::kUnexplainedMemory, 1, unexplained);
  run.Train({});
}

TEST(ZombieGpuMemory, NamesProcessesThatAreNotTheJobs) {
  TestRun run(60);
  const auto held = [](double) { return 12e9; };
  for (const char* owner : {"job", "other"}) {
    const std::string pid = owner == std::string("job") ? "100" : "4711";
    run.Series(run.Entity({.scope = model::Scope::kProcess,
                           .name = "GPU-0/" + pid,
                           .labels = {{"pid", pid}, {"gpu", "0"}},
                           .attributes = {{"owner", owner}}}),
               model::gpu::kOfProcessMemory, 1, held);
  }
  AddLists(run, held, [](double) { return 9e6; });
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].gpu, 0);
  EXPECT_EQ(ValueOf(findings[0], "pid4711_bytes"), 12e9);
  EXPECT_NE(ValueOf(findings[0], "pid100_bytes"), 12e9);
  EXPECT_NE(findings[0].advice.at(0).code.find("-p 4711"), std::string::npos);
}

TEST(ZombieGpuMemory, FindsMemoryThatNoProcessHolds) {
  TestRun run(60);
  AddLists(
      run, [](double) { return 0.0; }, [](double t_s) { return t_s < 30 ? 9e9 : 9e6; });
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(ValueOf(findings[0], "lowest_bytes"), 9e9);
  EXPECT_LT(findings[0].confidence, 0.9);
}

TEST(ZombieGpuMemory, WorksItOutWhereOnlyTheListIsTold) {
  TestRun run(60);
  AddLists(run, {}, {});
  run.Constant(run.Gpu(0), model::gpu::kProcessMemory, 1, 8e9);
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "warning");
}

TEST(ZombieGpuMemory, LittleOfIsOnlyRemarkedOn) {
  TestRun run(60);
  AddLists(
      run, [](double) { return 5e8; }, [](double) { return 9e6; });
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "info");
}

TEST(ZombieGpuMemory, WhatTheDriverKeepsAndEndingProcessesAreNone) {
  TestRun run(60);
  AddLists(
      run, [](double t_s) { return t_s < 10 ? 1e7 : 0.0; },
      [](double t_s) { return t_s > 50 && t_s < 52.5 ? 3e10 : 9e6; });
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(ZombieGpuMemory, GpusOfOtherJobsAreNotJudged) {
  TestRun run(60);
  AddLists(
      run, [](double) { return 0.0; }, [](double) { return 9e6; });
  run.Constant(run.Gpu(1), model::gpu::kOthersMemory, 1, 40e9);
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(ZombieGpuMemory, CannotJudgeWithoutLists) {
  TestRun run(60);
  AddLists(run, {}, {});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
  TestRun none(1);
  EXPECT_NE(none.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
