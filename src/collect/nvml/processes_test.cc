// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "collect/nvml/replay_fixture.h"
#include "collect/source_test_util.h"

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

TEST_F(ProcessesTest, SaysOfEachProcessThatItsGpuIsReleased) {
  Play(R"({"devices":{"count":1,"values":{"memory_total":1000000000,"mem_used":6000000},
      "processes":[[503,5000000]]}})");
  const auto source = MakeSource(kGpuProcesses);
  EXPECT_THAT(OfPid(Sample(*source, 0), "503"), Optional(5000000.0));
  session_->Release(kBeginNs, 60 * base::kNsPerSecond);
  EXPECT_EQ(OfPid(Sample(*source, 10), "503"), std::nullopt);
  const auto states = Records<model::SeriesState>();
  EXPECT_TRUE(std::any_of(states.begin(), states.end(), [&](const model::SeriesState& state) {
    return registry_.series(state.series).metric.name == "gpu.process.memory" &&
           state.detail == "NVML was released on request";
  }));
  EXPECT_THAT(OfPid(Sample(*source, 60), "503"), Optional(5000000.0));
}

// The training 100 with a worker 101, the server 300 of somebody else, on one GPU of 100 GB.
class OwnMemoryTest : public ProcessesTest {
 protected:
  void Start(const std::string& processes, double used, bool initial = true) {
    for (const int pid : {100, 101, 300, static_cast<int>(getpid())}) {
      const std::string folder = std::to_string(pid);
      proc_.Write(folder + "/stat",
                  fmt::format("{0} (python3) S {1} {0} {0} 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 50 0 0\n",
                              folder, pid == 101 ? 100 : 1));
      proc_.Write(folder + "/comm", pid == 300 ? server_ + "\n" : "python3\n");
      proc_.Write(folder + "/environ", "");
    }
    const std::filesystem::path root = proc_.path();
    const std::string self = std::to_string(getpid());
    std::filesystem::create_symlink(self, root / "self");
    std::filesystem::create_directories(root / self / "ns");
    std::filesystem::create_symlink(initial ? "pid:[4026531836]" : "pid:[4026532178]",
                                    root / self / "ns" / "pid");
    env_.proc_root = proc_.path();
    job_.root_pid = 100;
    Play(
        R"({"devices":{"count":1,"values":{"memory_total":1e11,"memory_reserved":6e8,"mem_used":)" +
        std::to_string(used) + R"(},"processes":)" + processes + "}}");
  }
  std::vector<std::optional<double>> Ledger(const model::Samples& samples) const {
    return {Value(samples, "gpu.memory.own"), Value(samples, "gpu.memory.others"),
            Value(samples, "gpu.memory.unexplained")};
  }

  std::string server_ = "sshd";
  TempFolder proc_;
};

TEST_F(OwnMemoryTest, SplitsWhatIsInUseIntoOwnOthersAndUnexplained) {
  Start("[[100,2000000000],[101,500000000],[300,1000000000]]", 4e9);
  const auto samples = Sample(*MakeSource(kGpuProcesses), 0);
  EXPECT_THAT(Ledger(samples), ElementsAre(Optional(2.5e9), Optional(1e9), Optional(5e8)));
}

TEST_F(OwnMemoryTest, AJobThatIsNotOnTheGpuHasZero) {
  Start("[[300,1000000000]]", 1e9);
  const auto samples = Sample(*MakeSource(kGpuProcesses), 0);
  EXPECT_THAT(Ledger(samples), ElementsAre(Optional(0), Optional(1e9), Optional(0)));
}

TEST_F(OwnMemoryTest, MemoryWithoutAnyProcessIsUnexplained) {
  Start("[]", 5e9);
  const auto samples = Sample(*MakeSource(kGpuProcesses), 0);
  EXPECT_THAT(Ledger(samples), ElementsAre(std::nullopt, std::nullopt, Optional(5e9)));
  EXPECT_THAT(States("gpu.memory.own").back(), HasSubstr("lists no process although"));
}

TEST_F(OwnMemoryTest, InAContainerAnEqualPidIsNotOurs) {
  Start("[[100,2000000000],[4711,1000000000]]", 4e9, false);
  const auto source = MakeSource(kGpuProcesses);
  for (const double t_s : {0.0, 10.0}) {
    const auto samples = Sample(*source, t_s);
    EXPECT_THAT(Ledger(samples), ElementsAre(std::nullopt, std::nullopt, Optional(1e9)));
  }
  EXPECT_THAT(States("gpu.memory.own").back(), HasSubstr("pid namespace"));
  EXPECT_THAT(OfPid(Sample(*source, 20), "100"), Optional(2e9)) << "by the driver's number";
}

TEST_F(OwnMemoryTest, InAContainerAnEmptyListSaysNothingAtAll) {
  Start("[]", 5e9, false);
  const auto samples = Sample(*MakeSource(kGpuProcesses), 0);
  EXPECT_THAT(Ledger(samples), ElementsAre(std::nullopt, std::nullopt, std::nullopt));
}

TEST_F(OwnMemoryTest, InAContainerWhosePidsAreListedTheMemoryOfOthersIsNotZero) {
  std::filesystem::create_directories(std::filesystem::path(proc_.path()) / "100" / "fd");
  std::filesystem::create_symlink("/dev/nvidia0",
                                  std::filesystem::path(proc_.path()) / "100" / "fd" / "9");
  Start(R"([{"pid":100,"memory":2000000000,"from_s":0.3}])", 6e9, false);
  const auto source = MakeSource(kGpuProcesses);
  Sample(*source, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(400));  // the list plays in real time
  const auto samples = Sample(*source, 10);
  EXPECT_THAT(Ledger(samples), ElementsAre(Optional(2e9), std::nullopt, Optional(4e9)));
  EXPECT_THAT(States("gpu.memory.others").back(), HasSubstr("of this container only"));
}

TEST_F(OwnMemoryTest, ZeroBytesOfAListedProcessAreNotTold) {
  Start("[[100,0],[300,1000000000]]", 4e9);
  const auto samples = Sample(*MakeSource(kGpuProcesses), 0);
  EXPECT_THAT(Ledger(samples), ElementsAre(std::nullopt, Optional(1e9), std::nullopt));
  EXPECT_EQ(OfPid(samples, "100"), std::nullopt);
  EXPECT_EQ(Value(samples, "gpu.memory.processes"), std::nullopt);
}

TEST_F(OwnMemoryTest, AnMpsServerThatHoldsTheClientsMemoryMakesItUnknown) {
  server_ = "nvidia-cuda-mps";
  Start("[[300,3000000000]]", 3e9);
  const auto samples = Sample(*MakeSource(kGpuProcesses), 0);
  EXPECT_THAT(Ledger(samples), ElementsAre(std::nullopt, std::nullopt, Optional(0)));
  EXPECT_THAT(States("gpu.memory.own").back(), HasSubstr("MPS"));
  const auto events = Records<model::Event>();
  EXPECT_EQ(std::count_if(events.begin(), events.end(),
                          [](const model::Event& event) { return event.name == "gpu.mps"; }),
            1);
}

TEST_F(OwnMemoryTest, AnMpsServerBesideListedClientsTakesNothingAway) {
  server_ = "nvidia-cuda-mps";
  Start("[[100,2000000000],[300,30000000]]", 3e9);
  const auto samples = Sample(*MakeSource(kGpuProcesses), 0);
  EXPECT_THAT(Ledger(samples), ElementsAre(Optional(2e9), Optional(3e7), Optional(970000000)));
}

TEST_F(OwnMemoryTest, AnExcludedGpuWithAProcessOfOursBecomesTheJobs) {
  Start("[[100,2000000000]]", 2e9);
  const auto source = MakeSource(kGpuProcesses);
  Device& device = session_->devices()[0];
  device.excluded = true;
  EXPECT_THAT(Sample(*source, 0).values, IsEmpty());
  EXPECT_TRUE(device.used_by_job);
}

TEST_F(OwnMemoryTest, AnExcludedGpuOfOthersStaysUnread) {
  Start("[[300,2000000000]]", 2e9);
  const auto source = MakeSource(kGpuProcesses);
  session_->devices()[0].excluded = true;
  EXPECT_THAT(Sample(*source, 0).values, IsEmpty());
  EXPECT_FALSE(session_->devices()[0].used_by_job);
}

TEST_F(OwnMemoryTest, ProcessesAreMarkedAsTheJobsOrOthers) {
  Start("[[100,2000000000],[300,1000000000]]", 4e9);
  Sample(*MakeSource(kGpuProcesses), 0);
  std::map<std::string, std::string> owners;
  for (const model::EntityDef& entity : registry_.entities()) {
    if (entity.scope == model::Scope::kProcess) {
      owners[entity.labels[0].second] = entity.attributes[0].second;
    }
  }
  EXPECT_EQ(owners["100"], "job");
  EXPECT_EQ(owners["300"], "other");
}

}  // namespace
}  // namespace epochmeter::collect::nvml
