// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "diagnose/rules/all.h"
#include "diagnose/test_memory.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kBatchHeadroom;

std::vector<model::Finding> JudgePeak(double peak, double held = 4e8) {
  TestRun run(60);
  AddDevice(run, 0, 24e9, [](double) { return 5e9; });
  AddAllocator(run, 0,
               {.held = [held](double) { return held; }, .peak = [peak](double) { return peak; }});
  run.Train({});
  return run.Judge(kRule);
}

TEST(BatchHeadroom, RemarksOnADeviceThatIsMostlyFree) {
  const auto findings = JudgePeak(3e9);
  ASSERT_EQ(SeverityOf(findings), "info");
  EXPECT_EQ(ValueOf(findings[0], "batch_size"), 32);
  EXPECT_NEAR(ValueOf(findings[0], "free_bytes"), 23.88e9 - 3e9, 1);
}

TEST(BatchHeadroom, ADeviceInUseHasNone) { EXPECT_EQ(SeverityOf(JudgePeak(15e9)), "none"); }

TEST(BatchHeadroom, CannotJudgeWithoutAPeak) {
  TestRun run(60);
  AddDevice(run, 0, 24e9, [](double) { return 5e9; });
  AddAllocator(run, 0, {});
  run.Train({});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
