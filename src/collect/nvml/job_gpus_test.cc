// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "collect/nvml/replay_fixture.h"
#include "collect/source_test_util.h"

namespace epochmeter::collect::nvml {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kFourGpus =
    R"({"name":"four","devices":{"count":4,"values":{"util_gpu":50,"util_mem":20,
        "memory_total":1e11,"mem_used":5e9}}})";

// Two GPUs; the second one is cut into instances, with a hole between.
constexpr const char* kMigGpus =
    R"({"name":"mig","devices":[{"values":{"util_gpu":50,"util_mem":20}},
        {"values":{"util_gpu":50,"util_mem":20},
         "mig":{"max":7,"instances":[{"gi":1,"ci":0,"profile":"3g.71gb","uuid":"MIG-aaaa"},null,
                                     {"gi":5,"ci":0,"profile":"1g.18gb","uuid":"MIG-bbbb"}]}}]})";

class JobGpusTest : public ReplayTest {
 protected:
  void Start(const std::string& environ_text, const char* script = kFourGpus) {
    env_.proc_root = proc_.path();
    job_.root_pid = 100;
    Process(100, 1, environ_text);
    Play(script);
  }
  void Process(int pid, int parent, std::string environ_text) {
    std::replace(environ_text.begin(), environ_text.end(), ';', '\0');
    const std::string folder = std::to_string(pid);
    proc_.Write(folder + "/stat", folder + " (python3) S " + std::to_string(parent) + " " + folder +
                                      " " + folder + " 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 50 0 0\n");
    proc_.Write(folder + "/comm", "python3\n");
    proc_.Write(folder + "/environ", environ_text);
  }
  // The attribute of each device, in order; "-" without.
  std::vector<std::string> Jobs() const {
    std::vector<std::string> out;
    for (const Device& device : session_->devices()) {
      std::string job = "-";
      for (const auto& [key, value] : registry_.entity(device.entity).attributes) {
        if (key == "job") job = value;
      }
      out.push_back(job);
    }
    return out;
  }
  // Indexes of the devices that have a value of utilisation.
  std::vector<size_t> Read(Source& source, double t_s) {
    const auto samples = Sample(source, t_s);
    std::vector<size_t> out;
    for (size_t i = 0; i < session_->devices().size(); ++i) {
      if (Value(samples, "gpu.utilization", i)) out.push_back(i);
    }
    return out;
  }
  std::string LastChoice(const std::string& field) const {
    const auto events = Records<model::Event>();
    return events.empty() ? "" : std::string(events.back().Text(field).value_or(""));
  }

  TempFolder proc_;
};

TEST_F(JobGpusTest, ReadsOnlyTheGpusThatTheJobMayUse) {
  Start("CUDA_VISIBLE_DEVICES=1,3");
  const auto job = MakeSource(kGpuJob);
  const auto utilization = MakeSource(kGpuUtilization);
  EXPECT_THAT(Jobs(), ElementsAre("no", "yes", "no", "yes"));
  EXPECT_THAT(Read(*utilization, 0), ElementsAre(1, 3));
  EXPECT_EQ(LastChoice("gpus"), "1,3");
  EXPECT_EQ(LastChoice("by"), "environment");
}

TEST_F(JobGpusTest, DevicesOfOthersHaveNoSeries) {
  Start("CUDA_VISIBLE_DEVICES=3");
  const auto job = MakeSource(kGpuJob);
  const auto utilization = MakeSource(kGpuUtilization);
  Read(*utilization, 0);
  for (const model::SeriesDef& series : registry_.all_series()) {
    EXPECT_EQ(series.entity, session_->devices()[3].entity);
  }
}

TEST_F(JobGpusTest, OnDemandOthersAreReadTooAndMarked) {
  job_.all_gpus = true;
  Start("CUDA_VISIBLE_DEVICES=1,3");
  const auto job = MakeSource(kGpuJob);
  const auto utilization = MakeSource(kGpuUtilization);
  EXPECT_THAT(Jobs(), ElementsAre("no", "yes", "no", "yes"));
  EXPECT_THAT(Read(*utilization, 0), ElementsAre(0, 1, 2, 3));
}

TEST_F(JobGpusTest, WithoutAnyWordAllAreReadAndNoneIsMarked) {
  Start("HOME=/root");
  const auto job = MakeSource(kGpuJob);
  const auto utilization = MakeSource(kGpuUtilization);
  EXPECT_THAT(Jobs(), ElementsAre("-", "-", "-", "-"));
  EXPECT_THAT(Read(*utilization, 0), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(LastChoice("by"), "nothing");
}

TEST_F(JobGpusTest, FollowsRanksThatSetTheirOwnLater) {
  Start("HOME=/root");
  const auto job = MakeSource(kGpuJob);
  const auto utilization = MakeSource(kGpuUtilization);
  EXPECT_THAT(Read(*utilization, 0), ElementsAre(0, 1, 2, 3));
  Process(101, 100, "RANK=0;CUDA_VISIBLE_DEVICES=0");
  Process(102, 100, "RANK=1;CUDA_VISIBLE_DEVICES=2");
  Sample(*job, 2);
  EXPECT_THAT(Read(*utilization, 2), ElementsAre(0, 2));
  EXPECT_THAT(Jobs(), ElementsAre("yes", "no", "yes", "no"));
}

TEST_F(JobGpusTest, AProcessOnItsWayOutTakesNothingBack) {
  Start("CUDA_VISIBLE_DEVICES=1");
  const auto job = MakeSource(kGpuJob);
  Process(100, 1, "");  // the kernel has let go of its memory
  Sample(*job, 1);
  EXPECT_THAT(Jobs(), ElementsAre("no", "yes", "no", "no"));
  proc_.Remove("100");
  Sample(*job, 2);
  EXPECT_THAT(Jobs(), ElementsAre("no", "yes", "no", "no"));
}

TEST_F(JobGpusTest, AGpuThatTheTrainingNamesIsReadWhateverTheVariablesSay) {
  Start("CUDA_VISIBLE_DEVICES=0");
  const auto job = MakeSource(kGpuJob);
  const auto utilization = MakeSource(kGpuUtilization);
  EXPECT_THAT(Read(*utilization, 0), ElementsAre(0));
  job_.named_gpus = {session_->devices()[2].uuid, SysfsBusId(session_->devices()[3].bus_id)};
  Sample(*job, 2);
  EXPECT_THAT(Read(*utilization, 2), ElementsAre(0, 2, 3));
  EXPECT_EQ(LastChoice("by"), "environment,training");
}

TEST_F(JobGpusTest, AMigDeviceMeansTheGpuThatItIsCutFrom) {
  Start("CUDA_VISIBLE_DEVICES=MIG-bbbb", kMigGpus);
  const auto job = MakeSource(kGpuJob);
  EXPECT_THAT(Jobs(), ElementsAre("no", "yes"));
  EXPECT_EQ(LastChoice("gpus"), "1");
  EXPECT_EQ(LastChoice("note"), "");
}

TEST_F(JobGpusTest, AMigDeviceThatIsNotThereLeavesNone) {
  Start("CUDA_VISIBLE_DEVICES=MIG-cccc", kMigGpus);
  const auto job = MakeSource(kGpuJob);
  EXPECT_THAT(Jobs(), ElementsAre("no", "no"));
  EXPECT_THAT(LastChoice("note"), HasSubstr("'MIG-cccc' ends the list"));
}

TEST_F(JobGpusTest, AnEnvironmentThatHidesAllLeavesAllUnread) {
  Start("CUDA_VISIBLE_DEVICES=-1");
  const auto job = MakeSource(kGpuJob);
  const auto utilization = MakeSource(kGpuUtilization);
  EXPECT_THAT(Read(*utilization, 0), ElementsAre());
  EXPECT_THAT(LastChoice("note"), HasSubstr("'-1' ends the list"));
}

}  // namespace
}  // namespace epochmeter::collect::nvml
