// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <time.h>

#include "collect/nvml/replay_fixture.h"

namespace epochmeter::collect::nvml {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Optional;
using testing::Pair;

constexpr const char* kScript = R"({"devices":{"count":1,"name":"NVIDIA H200",
    "values":{"memory_total":1000,"mem_used":{"return":4},"gpm_supported":1},
    "mig":{"max":7,"instances":[
      {"gi":1,"ci":0,"profile":"3g.71gb","values":{"memory_total":400,"mem_used":120,
       "memory_reserved":10,"gpm.sm_util":44,"gpm.graphics_util":50}},
      null,
      {"gi":5,"profile":"1g.18gb"},
      {"gi":9,"ci":0,"profile":"1c.2g.35gb","values":{"memory_total":200,"mem_used":20,
       "gpm.sm_util":130,"gpm.graphics_util":90}},
      {"gi":9,"ci":1,"profile":"1c.2g.35gb","values":{"memory_total":200,"mem_used":20}}]}}})";

class MigTest : public ReplayTest {
 protected:
  std::vector<model::EntityDef> Instances() const {
    std::vector<model::EntityDef> found;
    for (const auto& entity : registry_.entities()) {
      if (entity.scope == model::Scope::kMig) found.push_back(entity);
    }
    return found;
  }
  std::optional<double> OfInstance(const model::Samples& samples, size_t instance,
                                   const std::string& metric) const {
    for (const model::SampleValue& sample : samples.values) {
      const model::SeriesDef& series = registry_.series(sample.series);
      if (series.entity == Instances()[instance].id && KeyOf(series) == metric) return sample.value;
    }
    return std::nullopt;
  }
  std::vector<std::string> StatesOf(size_t instance, const std::string& metric) const {
    std::vector<std::string> out;
    for (const auto& state : Records<model::SeriesState>()) {
      const model::SeriesDef& series = registry_.series(state.series);
      if (series.entity == Instances()[instance].id && KeyOf(series) == metric) {
        out.push_back(state.detail);
      }
    }
    return out;
  }
};

TEST_F(MigTest, FindsInstancesPastHolesAndReadsTheirMemoryByTheirOwnHandle) {
  Play(kScript);
  const auto source = MakeSource(kGpuMig);
  const auto samples = Sample(*source, 0);
  ASSERT_EQ(Instances().size(), 3U) << "one place is empty, one has no compute instance";
  EXPECT_THAT(Instances()[0].labels, Contains(Pair("gpu_instance_id", "1")));
  EXPECT_THAT(Instances()[0].labels, Contains(Pair("profile", "3g.71gb")));
  EXPECT_THAT(Instances()[0].attributes,
              Contains(Pair("parent_uuid", session_->devices()[0].uuid)));
  EXPECT_THAT(OfInstance(samples, 0, "gpu.memory.used"), Optional(120));
  EXPECT_THAT(OfInstance(samples, 0, "gpu.memory.reserved"), Optional(10));
  EXPECT_THAT(OfInstance(samples, 1, "gpu.memory.used"), Optional(20));
}

TEST_F(MigTest, NeverGivesAnInstanceTheUtilisationOfItsGpu) {
  Play(kScript);
  const auto source = MakeSource(kGpuMig);
  const auto samples = Sample(*source, 0);
  EXPECT_EQ(OfInstance(samples, 0, "gpu.utilization"), std::nullopt);
  EXPECT_THAT(StatesOf(0, "gpu.utilization"), ElementsAre(HasSubstr("no utilisation of MIG")));
  const auto parent = Sample(*MakeSource(kGpuUtilization), 0);
  EXPECT_EQ(Value(parent, "gpu.utilization"), std::nullopt);
  EXPECT_THAT(States("gpu.utilization"), ElementsAre(HasSubstr("MIG is on")));
}

TEST_F(MigTest, SaysThatInstancesAreReleasedAndFindsThemAgain) {
  Play(kScript);
  const auto source = MakeSource(kGpuMig);
  Sample(*source, 0);
  session_->Release(kBeginNs, 60 * base::kNsPerSecond);
  EXPECT_EQ(OfInstance(Sample(*source, 30), 0, "gpu.memory.used"), std::nullopt);
  EXPECT_THAT(StatesOf(0, "gpu.memory.used"), ElementsAre(HasSubstr("NVML is released")));
  EXPECT_THAT(OfInstance(Sample(*source, 60), 0, "gpu.memory.used"), Optional(120));
  EXPECT_EQ(Instances().size(), 3U);
}

TEST_F(MigTest, CountsAGpuInstanceOfTwoComputeInstancesOnce) {
  Play(kScript);
  const auto samples = Sample(*MakeSource(kGpuMig), 0);
  EXPECT_EQ(OfInstance(samples, 2, "gpu.memory.used"), std::nullopt);
  EXPECT_THAT(StatesOf(2, "gpu.memory.used"),
              ElementsAre(HasSubstr("shares memory and counters with " + Instances()[1].name)));
}

TEST_F(MigTest, ReadsGpmOfInstancesAndKeepsMoreThanAllSmsWithARemark) {
  Play(kScript);
  const auto source = MakeSource(kGpuMig);
  Sample(*source, 0);
  const timespec time{0, 250000000};
  nanosleep(&time, nullptr);
  const auto samples = Sample(*source, 1);
  EXPECT_NEAR(OfInstance(samples, 0, "gpu.sm.active").value_or(-1), 0.44, 1e-9);
  EXPECT_NEAR(OfInstance(samples, 1, "gpu.sm.active").value_or(-1), 1.30, 1e-9);
  std::vector<std::string> kinds;
  for (const auto& loss : Records<model::Loss>()) kinds.push_back(loss.kind);
  EXPECT_THAT(kinds, Contains("value.implausible"));
}

TEST_F(MigTest, TellsPermissionOnTheParentAndStillReadsInstances) {
  Play(kScript);
  const auto parent = Sample(*MakeSource(kGpuMemory), 0);
  EXPECT_EQ(Value(parent, "gpu.memory.used"), std::nullopt);
  EXPECT_THAT(States("gpu.memory.used"), ElementsAre(HasSubstr("no_permission")));
}

TEST_F(MigTest, SaysWhenAnInstanceIsGoneAndTakesItBackByItsUuid) {
  Play(R"({"devices":{"count":1,"mig":{"max":7,"instances":[
      {"gi":1,"ci":0,"profile":"3g.71gb","uuid":"MIG-a","absent":[0.2,0.5],
       "values":{"memory_total":400,"mem_used":120}}]}}})");
  const auto source = MakeSource(kGpuMig);
  EXPECT_THAT(OfInstance(Sample(*source, 0), 0, "gpu.memory.used"), Optional(120));
  const timespec time{0, 300000000};
  nanosleep(&time, nullptr);
  EXPECT_EQ(OfInstance(Sample(*source, 30), 0, "gpu.memory.used"), std::nullopt);
  EXPECT_THAT(StatesOf(0, "gpu.memory.used"), Contains(HasSubstr("instance is gone")));
  nanosleep(&time, nullptr);
  EXPECT_THAT(OfInstance(Sample(*source, 60), 0, "gpu.memory.used"), Optional(120));
  EXPECT_EQ(Instances().size(), 1U);
}

}  // namespace
}  // namespace epochmeter::collect::nvml
