// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <time.h>

#include "collect/nvml/replay_fixture.h"

namespace epochmeter::collect::nvml {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;

void SleepMs(int ms) {
  const timespec time{0, ms * 1000000L};
  nanosleep(&time, nullptr);
}

class GpmTest : public ReplayTest {};

TEST_F(GpmTest, GivesRatiosOverTheWindowFromTheSecondSampleOn) {
  Play(R"({"devices":{"count":2,"values":{"gpm.sm_util":44.924,"gpm.any_tensor_util":0,
      "gpm.pcie_rx_mib_s":127.5}},"gpm_nan_under_ms":100})");
  const auto source = MakeSource(kGpuActivity);
  ASSERT_NE(source, nullptr);
  EXPECT_THAT(Sample(*source, 0).values, IsEmpty());
  SleepMs(210);
  const auto samples = Sample(*source, 0.21);
  EXPECT_NEAR(Value(samples, "gpu.sm.active", 1).value_or(-1), 0.44924, 1e-9);
  EXPECT_THAT(Value(samples, "gpu.tensor.active"), Optional(0.0));
  EXPECT_THAT(Value(samples, "gpu.pcie.rx"), Optional(127.5 * 1048576));
  // Values the device doesn't have are told once each, by their own name.
  EXPECT_EQ(Value(samples, "gpu.dram.active"), std::nullopt);
  SleepMs(210);
  Sample(*source, 0.42);
  EXPECT_THAT(States("gpu.dram.active"),
              ElementsAre("not_supported: NVML GPM 10: Not Supported (3)"));
  EXPECT_THAT(States("gpu.sm.active"), IsEmpty());
}

TEST_F(GpmTest, NeverTakesAWindowUnder200Ms) {
  Play(R"({"devices":{"count":1,"values":{"gpm.sm_util":50}},"gpm_nan_under_ms":100})");
  context_.emplace(SourceContext{.env = env_,
                                 .registry = registry_,
                                 .sink = sink_,
                                 .tick_ns = 100 * base::kNsPerMs,
                                 .job = job_,
                                 .nvml = session_.get()});
  const auto source = MakeSource(kGpuActivity);
  int with_value = 0;
  for (int tick = 0; tick < 9; ++tick) {
    with_value += static_cast<int>(!Sample(*source, tick * 0.1).values.empty());
    SleepMs(100);
  }
  EXPECT_EQ(with_value, 4);
  EXPECT_THAT(Records<model::Loss>(), IsEmpty());
  EXPECT_EQ(Records<model::SeriesDef>()[0].period_ns, 200 * base::kNsPerMs);
}

TEST_F(GpmTest, WaitsLongerAfterALateTickRatherThanReadingNan) {
  Play(R"({"devices":{"count":1,"values":{"gpm.sm_util":50}},"gpm_nan_under_ms":100})");
  const auto source = MakeSource(kGpuActivity);
  Sample(*source, 0);
  EXPECT_THAT(Sample(*source, 1).values, IsEmpty()) << "1 s by the grid, but only just read";
  SleepMs(160);
  EXPECT_FALSE(Sample(*source, 2).values.empty());
}

TEST_F(GpmTest, DropsNanAndImpossibleShares) {
  Play(R"({"devices":{"count":1,"values":{"gpm.sm_util":50,"gpm.fp32_util":10,
      "gpm.fp64_util":10}},
      "faults":[{"values":{"gpm.sm_util":"NaN","gpm.fp32_util":250}}]})");
  const auto source = MakeSource(kGpuActivity);
  Sample(*source, 0);
  SleepMs(210);
  const auto samples = Sample(*source, 1);
  EXPECT_EQ(Value(samples, "gpu.sm.active"), std::nullopt);
  EXPECT_EQ(Value(samples, "gpu.fp.active precision=fp32"), std::nullopt);
  EXPECT_THAT(Value(samples, "gpu.fp.active precision=fp64"), Optional(0.1));
  EXPECT_EQ(Records<model::Loss>().size(), 2U);
}

TEST_F(GpmTest, SaysWhyAnOlderGpuHasNone) {
  Play(R"({"devices":{"count":1,"values":{"util_gpu":50}}})");
  const auto source = MakeSource(kGpuActivity);
  Sample(*source, 0);
  Sample(*source, 1);
  EXPECT_THAT(States("gpu.sm.active"), ElementsAre(HasSubstr("begin with Hopper")));
}

TEST_F(GpmTest, ThrowsAwayTheWindowThatALossOfTheDeviceCutThrough) {
  Play(R"({"devices":{"count":1,"values":{"gpm.sm_util":50}},
      "faults":[{"function":"nvmlGpmMetricsGet","return":15,"times":1}]})");
  const auto source = MakeSource(kGpuActivity);
  Sample(*source, 0);
  SleepMs(160);
  EXPECT_THAT(Sample(*source, 1).values, IsEmpty());
  EXPECT_TRUE(session_->devices()[0].lost);
  SleepMs(160);
  EXPECT_THAT(Sample(*source, 31).values, IsEmpty()) << "the first sample of the new handle";
  SleepMs(160);
  EXPECT_THAT(Value(Sample(*source, 32), "gpu.sm.active"), Optional(0.5));
  EXPECT_EQ(States("gpu.sm.active").back(), "ok: ");
}

class GpmContradictionTest : public GpmTest {
 protected:
  // Reads `readings` windows of a GPU whose counters show nothing; what was told of it.
  std::vector<std::string> Told(const std::string& values, int readings) {
    Play(R"({"devices":{"count":1,"values":{"gpm.graphics_util":0,"gpm.sm_util":0,)" + values +
         R"(}},"gpm_nan_under_ms":0})");
    const auto source = MakeSource(kGpuActivity);
    Sample(*source, 0);
    for (int i = 1; i <= readings; ++i) {
      SleepMs(160);
      EXPECT_THAT(Value(Sample(*source, i), "gpu.sm.active"), Optional(0.0)) << "not altered";
    }
    std::vector<std::string> told;
    for (const auto& loss : Records<model::Loss>()) told.push_back(loss.kind + ": " + loss.detail);
    return told;
  }
};

TEST_F(GpmContradictionTest, CallsCountersDeadThatShowNothingWhilePowerIsDrawn) {
  EXPECT_THAT(Told(R"("util_gpu":100,"util_mem":0,"power_mw":420000,"power_limit_mw":700000)", 5),
              ElementsAre(AllOf(HasSubstr("value.implausible: gpu.sm.active on "),
                                HasSubstr("counters are dead until the GPU is reset"))));
}

TEST_F(GpmContradictionTest, CallsUtilizationStuckThatIsFullWhilePowerIsIdle) {
  EXPECT_THAT(Told(R"("util_gpu":100,"util_mem":0,"power_mw":120000,"power_limit_mw":700000)", 5),
              ElementsAre(HasSubstr("it is utilisation that is stuck")));
}

TEST_F(GpmContradictionTest, NeedsSeveralReadingsInARowAndBelievesAnIdleGpu) {
  EXPECT_THAT(Told(R"("util_gpu":100,"util_mem":0,"power_mw":420000,"power_limit_mw":700000)", 2),
              IsEmpty());
  EXPECT_THAT(Told(R"("util_gpu":0,"util_mem":0,"power_mw":70000,"power_limit_mw":700000)", 5),
              IsEmpty());
}

TEST_F(GpmTest, FollowsTheRecordingOfTwoGpus) {
  SKIP_WITHOUT(SharedRecording("ddp_healthy"));
  Play(SharedRecording("ddp_healthy"), 22);
  const auto source = MakeSource(kGpuActivity);
  Sample(*source, 0);
  SleepMs(450);
  const auto samples = Sample(*source, 1);
  EXPECT_EQ(samples.values.size(), 28U);
  for (size_t device : {0U, 1U}) {
    EXPECT_GT(Value(samples, "gpu.sm.active", device).value_or(0), 0.2);
    EXPECT_GT(Value(samples, "gpu.nvlink.tx_rate", device).value_or(0), 1e9);
  }
}

}  // namespace
}  // namespace epochmeter::collect::nvml
