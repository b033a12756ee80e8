// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <time.h>

#include "collect/nvml/replay_fixture.h"
#include "collect/nvml/sample_buffer.h"

namespace epochmeter::collect::nvml {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;

void Pass(double seconds) {
  const timespec time{0, static_cast<long>(seconds * 1e9)};
  nanosleep(&time, nullptr);
}

class TracesTest : public ReplayTest {};

TEST_F(TracesTest, SummarisesThePowerReadingsBetweenTwoTicks) {
  Play(R"({"devices":{"count":1,"values":{
      "power_instant_mw":{"low":100000,"high":700000,"period_s":0.2}}}})",
       5);
  const auto source = MakeSource(kGpuPowerTrace);
  const auto samples = Sample(*source, 0);
  EXPECT_THAT(Value(samples, "gpu.power.trace stat=min"), Optional(100));
  EXPECT_THAT(Value(samples, "gpu.power.trace stat=max"), Optional(700));
  EXPECT_NEAR(Value(samples, "gpu.power.trace stat=mean").value_or(0), 400, 40);
  EXPECT_EQ(Value(samples, "gpu.power.trace.covered"), std::nullopt) << "no earlier reading";
  Pass(0.5);
  const auto later = Sample(*source, 1);
  EXPECT_NEAR(Value(later, "gpu.power.trace.covered").value_or(0), 0.5, 0.1)
      << "half a second of readings in a tick of one";
}

TEST_F(TracesTest, DoesNotCountAReadingTwice) {
  for (const char* clock : {"wall", "monotonic", "boottime"}) {
    Play(std::string(R"({"sample_clock":")") + clock +
             R"(","devices":{"count":1,"values":{"power_instant_mw":5000}}})",
         5);
    ASSERT_TRUE(session_->Open(*context_).ok());
    SampleBuffer buffer(kNvmlSamplesTotalPower);
    std::vector<double> values;
    const NvmlDevice handle = session_->devices()[0].handle;
    ASSERT_EQ(buffer.Read(session_->api(), handle, &values), kNvmlSuccess);
    EXPECT_GT(values.size(), 100U) << clock;
    EXPECT_NEAR(buffer.spacing_s().value_or(0), 0.02, 1e-3);
    values.clear();
    Pass(0.1);
    ASSERT_EQ(buffer.Read(session_->api(), handle, &values), kNvmlSuccess);
    EXPECT_GE(values.size(), 3U) << clock;
    EXPECT_LE(values.size(), 20U) << clock;
  }
}

TEST_F(TracesTest, TakesNotFoundForAnIdleGpu) {
  Play(R"({"devices":{"count":1,"values":{"power_instant_mw":5000}},
      "faults":[{"function":"samples:0","return":6}]})",
       5);
  const auto source = MakeSource(kGpuPowerTrace);
  for (double t_s = 0; t_s < 10; ++t_s) EXPECT_THAT(Sample(*source, t_s).values, IsEmpty());
  EXPECT_THAT(Records<model::SeriesState>(), IsEmpty());
}

TEST_F(TracesTest, DropsReadingsThatCannotBe) {
  Play(R"({"devices":{"count":1,"values":{"util_gpu":37100,"util_mem":20}}})", 20);
  const auto samples = Sample(*MakeSource(kGpuUtilizationTrace), 0);
  EXPECT_EQ(Value(samples, "gpu.utilization.trace stat=mean"), std::nullopt);
  EXPECT_THAT(Value(samples, "gpu.memory.activity.trace stat=mean"), Optional(0.2));
  EXPECT_FALSE(Records<model::Loss>().empty());
}

TEST_F(TracesTest, SaysWhereTheBufferIsNotSupported) {
  Play(R"({"devices":{"count":1,"values":{"temp_c":40}}})");
  const auto source = MakeSource(kGpuPowerTrace);
  Sample(*source, 0);
  Sample(*source, 1);
  EXPECT_THAT(States("gpu.power.trace stat=mean"),
              ElementsAre(HasSubstr("nvmlDeviceGetSamples(TOTAL_POWER)")));
}

TEST(SummariseTest, GivesMeanBoundsAndNearestRank) {
  std::vector<double> values;
  for (int i = 100; i > 0; --i) values.push_back(i);
  const WindowStats stats = Summarise(&values);
  EXPECT_EQ(stats.mean, 50.5);
  EXPECT_EQ(stats.min, 1);
  EXPECT_EQ(stats.max, 100);
  EXPECT_EQ(stats.p95, 95);
  std::vector<double> one = {7};
  EXPECT_EQ(Summarise(&one).p95, 7);
}

}  // namespace
}  // namespace epochmeter::collect::nvml
