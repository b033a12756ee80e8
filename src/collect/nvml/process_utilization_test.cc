// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <time.h>

#include "collect/nvml/replay_fixture.h"

namespace epochmeter::collect::nvml {
namespace {

using testing::IsEmpty;
using testing::Optional;

class ProcessUtilizationTest : public ReplayTest {
 protected:
  // Of the process on the first device.
  std::optional<double> Of(const model::Samples& samples, int pid) const {
    for (const model::SampleValue& sample : samples.values) {
      const model::SeriesDef& series = registry_.series(sample.series);
      const std::string name = session_->devices()[0].uuid + "/" + std::to_string(pid);
      if (registry_.entity(series.entity).name == name &&
          series.metric.name == "gpu.process.utilization") {
        return sample.value;
      }
    }
    return std::nullopt;
  }
  const std::string me_ = std::to_string(getpid());
};

TEST_F(ProcessUtilizationTest, ReadsBusySharesThroughOldAndNewCalls) {
  for (const char* driver : {"", "-470", "-535.43", "-550"}) {
    Play(R"({"devices":{"count":1,"process_utilization":[{"pid":)" + me_ +
             R"(,"sm":63,"mem":12}]}})",
         5, driver);
    EXPECT_THAT(Of(Sample(*MakeSource(kGpuProcessUtilization), 0), getpid()), Optional(0.63))
        << driver;
  }
}

TEST_F(ProcessUtilizationTest, DropsRowsThatCannotBe) {
  Play(R"({"devices":{"count":1,"process_utilization":{"zero_rows":100,"capacity":300,"rows":[
      {"pid":)" +
           me_ + R"(,"sm":37100},{"pid":0,"sm":50},{"pid":4190001,"sm":40}]}}})",
       5);
  const auto samples = Sample(*MakeSource(kGpuProcessUtilization), 0);
  EXPECT_THAT(samples.values, IsEmpty());
  const auto losses = Records<model::Loss>();
  ASSERT_EQ(losses.size(), 1U);
  EXPECT_EQ(losses[0].kind, "value.out_of_range");
}

TEST_F(ProcessUtilizationTest, DoesNotTakeAnOldRowAgain) {
  Play(R"({"devices":{"count":1,"process_utilization":{"ignores_last_seen":true,"rows":[
      {"pid":)" +
           me_ + R"(,"sm":80,"stamp_s":1}]}}})",
       5);
  const auto source = MakeSource(kGpuProcessUtilization);
  EXPECT_THAT(Of(Sample(*source, 0), getpid()), Optional(0.8));
  EXPECT_THAT(Of(Sample(*source, 10), getpid()), Optional(0.0)) << "no new row: idle since";
}

TEST_F(ProcessUtilizationTest, TakesNotFoundForIdleAndToldUnsupportedForAbsent) {
  Play(R"({"devices":{"count":1,"process_utilization":[{"pid":)" + me_ +
           R"(,"sm":80,"to_s":5.2}]}})",
       5);
  auto source = MakeSource(kGpuProcessUtilization);
  EXPECT_THAT(Of(Sample(*source, 0), getpid()), Optional(0.8));
  const timespec time{0, 600000000};
  nanosleep(&time, nullptr);
  EXPECT_THAT(Of(Sample(*source, 10), getpid()), Optional(0.0));
  source.reset();

  Play(R"({"devices":{"count":1,"values":{"temp_c":40}},
      "faults":[{"function":"nvmlDeviceGetProcessUtilization","return":3},
                {"function":"nvmlDeviceGetProcessesUtilizationInfo","return":3}]})");
  Sample(*MakeSource(kGpuProcessUtilization), 0);
  ASSERT_FALSE(Records<model::Loss>().empty());
  EXPECT_EQ(Records<model::Loss>().back().kind, "gpu.process_utilization_unavailable");
}

}  // namespace
}  // namespace epochmeter::collect::nvml
