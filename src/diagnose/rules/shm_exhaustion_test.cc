// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "diagnose/rules/all.h"
#include "diagnose/test_host.h"
#include "diagnose/test_memory.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kShmExhaustion;
constexpr double kMB = 1e6;

TEST(ShmExhaustion, FiresWhereItIsNearlyFull) {
  TestRun run(60);
  AddShm(run, 64 * kMB, [](double t_s) { return t_s < 30 ? 10 * kMB : 60 * kMB; });
  run.Train({});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_NEAR(ValueOf(findings[0], "used_ratio"), 60.0 / 64, 1e-9);
}

TEST(ShmExhaustion, SaysWhenItWillBeFull) {
  TestRun run(60);
  AddShm(run, 1000 * kMB, [](double t_s) { return 100 * kMB + 5 * kMB * t_s; });
  run.Train({});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  // 400 MB at the end, 5 MB a second.
  EXPECT_NEAR(ValueOf(findings[0], "full_in_s"), 120, 10);
}

TEST(ShmExhaustion, BatchesThatComeAndGoAreNone) {
  TestRun run(60);
  AddShm(run, 1000 * kMB,
         [](double t_s) { return static_cast<int>(t_s) % 3 == 0 ? 500 * kMB : 90 * kMB; });
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(ShmExhaustion, WithoutALimitNothingIsFull) {
  TestRun run(60);
  AddShm(run, 0, [](double t_s) { return 100 * kMB * t_s; });
  run.Train({});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(ShmExhaustion, WhatTheTrainingSaidAsItDiedIsCritical) {
  TestRun run(60);
  run.Train({.ends = false});
  run.Write(model::LogText{
      .t_ns = 30'000'000'000,
      .stream = 2,
      .text = "Epoch 1\nERROR: Unexpected bus error encountered in worker. This might be caused by "
              "insufficient shared memory (shm).\n"});
  run.EndWith({.reason = "exited", .exit_code = 1});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "critical");
  EXPECT_NE(findings[0].summary.en.find("insufficient shared memory"), std::string::npos);
  EXPECT_EQ(findings[0].summary.en.find("Epoch 1"), std::string::npos);
}

TEST(ShmExhaustion, AnExceptionNamesItsRank) {
  TestRun run(60);
  run.Train({.rank = 3, .ends = false});
  run.Event(40, model::EventKind::kException, 3, "RuntimeError",
            {{"message",
              "unable to open shared memory object </torch_12> in read-write mode: No space"}});
  run.EndWith({.reason = "exited", .exit_code = 1});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "critical");
  EXPECT_EQ(findings[0].rank, 3);
}

TEST(ShmExhaustion, DeathBySigbusIsOne) {
  TestRun run(60);
  run.Train({.ends = false});
  run.EndWith({.reason = "signalled", .signal = 7});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "critical");
}

TEST(ShmExhaustion, OtherOutputIsNone) {
  TestRun run(60);
  run.Train({});
  run.Write(model::LogText{.t_ns = 1, .stream = 1, .text = "using shared memory for batches\n"});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(ShmExhaustion, CannotJudgeWithoutUseAndOutput) {
  TestRun run(60);
  run.Train({});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
