// SPDX-License-Identifier: Apache-2.0
#include "collect/nvml/identity.h"

#include <gmock/gmock.h>

#include "collect/nvml/asleep.h"
#include "collect/nvml/replay_fixture.h"

namespace epochmeter::collect::nvml {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Pair;

class IdentityTest : public ReplayTest {};

TEST_F(IdentityTest, SaysChipDriverAndPlaceInMemory) {
  Play(R"({"driver":"580.65.06","devices":{"count":1,"name":"NVIDIA H200",
      "values":{"numa_node":8,"addressing_mode":2,"architecture":9,"compute_capability":90}}})");
  ASSERT_TRUE(session_->Open(*context_).ok());
  const model::Labels& about = session_->devices()[0].attributes;
  EXPECT_THAT(about, Contains(Pair("architecture", "Hopper")));
  EXPECT_THAT(about, Contains(Pair("compute_capability", "9.0")));
  EXPECT_THAT(about, Contains(Pair("power_kind", "average_1s")));
  EXPECT_THAT(about, Contains(Pair("cuda_version", "13.0")));
  EXPECT_THAT(about, Contains(Pair("memory_numa_node", "8")));
  EXPECT_THAT(about, Contains(Pair("addressing_mode", "ats")));
}

TEST_F(IdentityTest, RecordsWhichVersionOfEachCallWasChosen) {
  for (const auto& [driver, list] :
       {std::pair("-470", "nvmlDeviceGetComputeRunningProcesses_v2"),
        std::pair("-550", "nvmlDeviceGetComputeRunningProcesses_v3"),
        std::pair("-615", "nvmlDeviceGetComputeRunningProcesses_v3")}) {
    Play(R"({"devices":{"count":1}})", 0, driver);
    ASSERT_TRUE(session_->Open(*context_).ok()) << driver;
    const auto event = Records<model::Event>().back();
    EXPECT_EQ(event.name, "nvml.symbols");
    EXPECT_EQ(event.Text("nvmlDeviceGetComputeRunningProcesses_v3"), list) << driver;
  }
}

TEST(PowerKindTest, IsAMeanFromAmpereOnExceptOnGa100) {
  EXPECT_EQ(PowerKind(kNvmlArchVolta, 7, 0), "instant");
  EXPECT_EQ(PowerKind(kNvmlArchTuring, 7, 5), "instant");
  EXPECT_EQ(PowerKind(kNvmlArchAmpere, 8, 0), "instant");
  EXPECT_EQ(PowerKind(kNvmlArchAmpere, 8, 6), "average_1s");
  EXPECT_EQ(PowerKind(kNvmlArchHopper, 9, 0), "average_1s");
  EXPECT_EQ(PowerKind(kNvmlArchAmpere, 0, 0), "") << "not known is not said";
  EXPECT_EQ(PowerKind(0, 9, 0), "");
}

TEST(CudaVersionTest, FollowsTheDriversBranch) {
  EXPECT_EQ(CudaVersionOf("470.256.02"), "11.4");
  EXPECT_EQ(CudaVersionOf("535.43.02"), "12.2");
  EXPECT_EQ(CudaVersionOf("580.159.04"), "13.0");
  EXPECT_EQ(CudaVersionOf("999.1"), "");
  EXPECT_EQ(CudaVersionOf(""), "");
}

TEST(KernelModuleVersionTest, FindsTheVersionAmongWords) {
  EXPECT_EQ(KernelModuleVersion("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue "
                                "Sep  2 00:01:02 UTC 2026\nGCC version:  gcc version 12.2.0\n"),
            "580.159.04");
  EXPECT_EQ(KernelModuleVersion(""), "");
}

TEST_F(IdentityTest, LeavesASleepingGpuAsleep) {
  const std::string sys = testing::TempDir() + "/sys-asleep-" + std::to_string(getpid());
  const std::string device = sys + "/bus/pci/devices/0000:01:00.0";
  std::filesystem::create_directories(device + "/power");
  std::ofstream(device + "/vendor") << "0x10de\n";
  std::ofstream(device + "/class") << "0x030000\n";
  std::ofstream(device + "/power/runtime_status") << "suspended\n";
  EXPECT_TRUE(AllGpusAsleep(sys));
  Play(R"({"devices":{"count":1}})");
  env_.sys_root = sys;
  const auto asleep = session_->Open(*context_);
  ASSERT_FALSE(asleep.ok());
  EXPECT_THAT(asleep.error().what, HasSubstr("sleeps"));
  std::ofstream(device + "/power/runtime_status") << "active\n";
  EXPECT_FALSE(AllGpusAsleep(sys));
  env_.monotonic_ns = [] { return base::MonotonicNs() + 2 * base::kNsPerSecond; };
  EXPECT_TRUE(session_->Open(*context_).ok());
  EXPECT_FALSE(AllGpusAsleep("/nonexistent"));
}

}  // namespace
}  // namespace epochmeter::collect::nvml
