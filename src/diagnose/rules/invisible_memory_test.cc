// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "diagnose/rules/all.h"
#include "diagnose/test_memory.h"
#include "model/gpu_metrics.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kInvisibleMemory;

// 10 GB are reserved of a device of 24 GB.
void AddMemory(TestRun& run, double used) {
  AddDevice(run, 0, 24e9, [used](double) { return used; });
  AddAllocator(run, 0, {.reserved = [](double) { return 10e9; }});
  run.Constant(run.Gpu(0), model::gpu::kProcessCount, 1, 1);
  run.Train({});
}

TEST(InvisibleMemory, MuchOfItIsAWarningSomeIsRemarkedOn) {
  TestRun much(60);
  AddMemory(much, 16e9);
  const auto findings = much.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(ValueOf(findings[0], "invisible_bytes"), 6e9);
  EXPECT_EQ(findings[0].gpu, 0);
  TestRun some(60);
  AddMemory(some, 11.5e9);
  EXPECT_EQ(SeverityOf(some.Judge(kRule)), "info");
}

TEST(InvisibleMemory, AContextIsNone) {
  TestRun run(60);
  AddMemory(run, 10.5e9);
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(InvisibleMemory, WhatOtherProcessesHoldIsTheirs) {
  TestRun run(60);
  run.Constant(run.Gpu(0), model::gpu::kOthersMemory, 1, 5.6e9);
  AddMemory(run, 16e9);
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(InvisibleMemory, CannotJudgeWithoutTheAllocator) {
  TestRun run(60);
  AddDevice(run, 0, 24e9, [](double) { return 16e9; });
  run.Train({});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
