// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "collect/nvml/replay_fixture.h"

namespace epochmeter::collect::nvml {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;

class ProcessesTest : public ReplayTest {
 protected:
  // The value of gpu.process.memory for a pid on the first device it is found on.
  std::optional<double> OfPid(const model::Samples& samples, const std::string& pid) const {
    for (const model::SampleValue& sample : samples.values) {
      const model::SeriesDef& series = registry_.series(sample.series);
      const model::EntityDef& entity = registry_.entity(series.entity);
      if (entity.scope == model::Scope::kProcess && entity.labels[0].second == pid) {
        return sample.value;
      }
    }
    return std::nullopt;
  }
};

TEST_F(ProcessesTest, ListsProcessesWithTheirMemory) {
  SKIP_WITHOUT(SharedRecording("ddp_healthy"));
  Play(SharedRecording("ddp_healthy"), -10);
  const auto samples = Sample(*MakeSource(kGpuProcesses), 0);
  EXPECT_THAT(Value(samples, "gpu.processes", 0), Optional(1));
  EXPECT_THAT(Value(samples, "gpu.memory.processes", 0), Optional(543162368.0));
  EXPECT_THAT(OfPid(samples, "679"), Optional(543162368.0));
}

TEST_F(ProcessesTest, GrowsItsBufferForLongLists) {
  std::string list;
  for (int pid = 1; pid <= 100; ++pid)
    list += (pid > 1 ? ",[" : "[") + std::to_string(pid) + ",10]";
  Play(R"({"devices":{"count":1,"processes":[)" + list + "]}}");
  const auto samples = Sample(*MakeSource(kGpuProcesses), 0);
  EXPECT_THAT(Value(samples, "gpu.processes"), Optional(100));
  EXPECT_THAT(Value(samples, "gpu.memory.processes"), Optional(1000));
}

TEST_F(ProcessesTest, ReadsTheLongerEntriesOfEarlyR535) {
  Play(R"({"devices":{"count":1,"processes":[[11,1000],[12,2000],[13,3000]]}})", 0, "-r535");
  const auto samples = Sample(*MakeSource(kGpuProcesses), 0);
  EXPECT_THAT(OfPid(samples, "12"), Optional(2000));
  EXPECT_THAT(OfPid(samples, "13"), Optional(3000));
  EXPECT_THAT(Value(samples, "gpu.memory.processes"), Optional(6000));
}

TEST_F(ProcessesTest, DropsAMisreadListAsAWhole) {
  Play(R"({"devices":{"count":1,"values":{"memory_total":10000,"mem_used":0},
      "processes":[[11,1000],[0,20]]}})");
  const auto source = MakeSource(kGpuProcesses);
  EXPECT_THAT(Sample(*source, 0).values, IsEmpty());
  ASSERT_EQ(Records<model::Loss>().size(), 1U);
  EXPECT_THAT(Records<model::Loss>()[0].detail, HasSubstr("impossible entries"));
}

TEST_F(ProcessesTest, DropsAListWithMoreMemoryThanTheDeviceHas) {
  Play(R"({"devices":{"count":1,"values":{"memory_total":10000,"mem_used":0},
      "processes":[[11,17000000000000]]}})");
  EXPECT_THAT(Sample(*MakeSource(kGpuProcesses), 0).values, IsEmpty());
}

TEST_F(ProcessesTest, NeverSaysZeroProcessesWhenTheyAreHidden) {
  Play(R"({"devices":{"count":1,"values":{"memory_total":1e11,"mem_used":5e9}}})");
  const auto source = MakeSource(kGpuProcesses);
  EXPECT_THAT(Sample(*source, 0).values, IsEmpty());
  EXPECT_THAT(Sample(*source, 10).values, IsEmpty());
  EXPECT_THAT(States("gpu.processes"), ElementsAre(HasSubstr("not_found: the driver lists no")));
}

TEST_F(ProcessesTest, SaysZeroOnAnIdleDevice) {
  Play(R"({"devices":{"count":1,"values":{"memory_total":1e11,"mem_used":0}}})");
  const auto samples = Sample(*MakeSource(kGpuProcesses), 0);
  EXPECT_THAT(Value(samples, "gpu.processes"), Optional(0));
  EXPECT_THAT(Value(samples, "gpu.memory.processes"), Optional(0));
}

TEST_F(ProcessesTest, LeavesUnknownMemoryAbsentButCountsTheProcess) {
  Play(R"({"devices":{"count":1,"processes":[[11,1000]]},
      "faults":[{"values":{"process_memory":1.8446744073709552e19}}]})");
  const auto samples = Sample(*MakeSource(kGpuProcesses), 0);
  EXPECT_THAT(Value(samples, "gpu.processes"), Optional(1));
  EXPECT_EQ(Value(samples, "gpu.memory.processes"), std::nullopt);
  EXPECT_EQ(OfPid(samples, "11"), std::nullopt);
  EXPECT_THAT(States("gpu.memory.processes"), ElementsAre(HasSubstr("does not tell memory")));
}

TEST_F(ProcessesTest, TellsWhenAProcessIsGone) {
  SKIP_WITHOUT(SharedRecording("healthy"));
  Play(SharedRecording("healthy"), -10);
  auto source = MakeSource(kGpuProcesses);
  EXPECT_THAT(OfPid(Sample(*source, 0), "503"), Optional(543162368.0));
  source.reset();
  sink_.records.clear();
  Play(SharedRecording("healthy"), 1000);
  source = MakeSource(kGpuProcesses);
  const auto samples = Sample(*source, 10);
  EXPECT_THAT(Value(samples, "gpu.processes"), Optional(0));
  EXPECT_EQ(OfPid(samples, "503"), std::nullopt);
}

}  // namespace
}  // namespace epochmeter::collect::nvml
