// SPDX-License-Identifier: Apache-2.0
#include "collect/nvml/gpu_owner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "collect/source_test_util.h"

namespace epochmeter::collect::nvml {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// The training 100 with a child 101, and 300 of somebody else. The reader is this process.
class GpuOwnerTest : public testing::Test {
 protected:
  GpuOwnerTest() {
    Process(100, 1);
    Process(101, 100);
    Process(300, 1);
    Process(getpid(), 1);
    Link("self", std::to_string(getpid()));
    job_.root_pid = 100;
    env_.proc_root = proc_.path();
  }

  void Process(int pid, int parent) {
    const std::string folder = std::to_string(pid);
    proc_.Write(folder + "/stat", folder + " (python3) S " + std::to_string(parent) + " " + folder +
                                      " " + folder + " 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 50 0 0\n");
    proc_.Write(folder + "/comm", pid == 300 ? "nvidia-cuda-mps\n" : "python3\n");
    proc_.Write(folder + "/environ", "");
  }
  void Link(const std::string& name, const std::string& target) {
    const std::filesystem::path path = std::filesystem::path(proc_.path()) / name;
    std::filesystem::create_directories(path.parent_path());
    std::filesystem::create_symlink(target, path);
  }
  void Namespace(bool initial) {
    Link(std::to_string(getpid()) + "/ns/pid", initial ? "pid:[4026531836]" : "pid:[4026532178]");
  }
  void OpensGpu(int pid) { Link(std::to_string(pid) + "/fd/9", "/dev/nvidia0"); }

  GpuOwner Make() {
    return GpuOwner({.env = env_,
                     .registry = registry_,
                     .sink = sink_,
                     .tick_ns = base::kNsPerSecond,
                     .job = job_},
                    "");
  }
  static void Refresh(GpuOwner& owner, const std::vector<uint32_t>& listed) {
    owner.Refresh(listed);
  }

  TempFolder proc_;
  model::Env env_;
  JobScope job_;
  model::MemorySink sink_;
  model::Registry registry_{sink_};
};

TEST_F(GpuOwnerTest, InTheInitialNamespaceTheTreeDecides) {
  Namespace(true);
  GpuOwner owner = Make();
  Refresh(owner, {100, 101, 300, 999});
  EXPECT_THAT(owner.why_unknown(), IsEmpty());
  EXPECT_EQ(owner.Of(100), Owner::kJob);
  EXPECT_EQ(owner.Of(101), Owner::kJob);
  EXPECT_EQ(owner.Of(300), Owner::kOther);
  EXPECT_EQ(owner.Of(999), Owner::kOther);
  EXPECT_EQ(owner.NameOf(300), "nvidia-cuda-mps");
}

TEST_F(GpuOwnerTest, AProcessThatEndedAfterItWasListedWasStillTheJobs) {
  Namespace(true);
  GpuOwner owner = Make();
  Refresh(owner, {100, 101});
  proc_.Remove("101");
  Refresh(owner, {100, 101});
  EXPECT_EQ(owner.Of(101), Owner::kJob);
  Refresh(owner, {100});
  Process(101, 1);  // the number is somebody else's now
  Refresh(owner, {100, 101});
  EXPECT_EQ(owner.Of(101), Owner::kOther);
}

TEST_F(GpuOwnerTest, InAContainerAnEqualNumberIsNotOurs) {
  Namespace(false);
  OpensGpu(100);
  GpuOwner owner = Make();
  for (int reading = 0; reading < 3; ++reading) {
    Refresh(owner, {100});  // listed from the beginning: it may be anybody's
    EXPECT_EQ(owner.Of(100), Owner::kUnknown);
    EXPECT_THAT(owner.why_unknown(), HasSubstr("container"));
  }
}

TEST_F(GpuOwnerTest, AnotherContainersPidsAreNeverTheJobs) {
  Namespace(false);
  OpensGpu(100);
  GpuOwner owner = Make();
  Refresh(owner, {});
  Refresh(owner, {100, 4711});  // 4711 is not here: the numbers are the host's
  EXPECT_EQ(owner.Of(100), Owner::kUnknown);
}

TEST_F(GpuOwnerTest, AProcessWithoutAGpuOpenProvesNothing) {
  Namespace(false);
  GpuOwner owner = Make();
  Refresh(owner, {});
  Refresh(owner, {100});
  EXPECT_EQ(owner.Of(100), Owner::kUnknown);
}

TEST_F(GpuOwnerTest, ADriverThatShowsOurProcessAppearingSpeaksOurNumbers) {
  Namespace(false);
  OpensGpu(100);
  OpensGpu(300);
  GpuOwner owner = Make();
  Refresh(owner, {300});
  EXPECT_EQ(owner.Of(300), Owner::kUnknown);
  Refresh(owner, {100, 300});
  EXPECT_EQ(owner.Of(100), Owner::kJob);
  EXPECT_EQ(owner.Of(300), Owner::kOther);
  Refresh(owner, {300});
  EXPECT_THAT(owner.why_unknown(), IsEmpty());
}

TEST_F(GpuOwnerTest, WithoutATrainingNothingIsKnown) {
  Namespace(true);
  job_.root_pid = 0;
  GpuOwner owner = Make();
  Refresh(owner, {100});
  EXPECT_EQ(owner.Of(100), Owner::kUnknown);
  job_.root_pid = 12345;
  GpuOwner other = Make();
  Refresh(other, {100});
  EXPECT_EQ(other.Of(100), Owner::kUnknown);
  EXPECT_THAT(other.why_unknown(), HasSubstr("12345"));
}

}  // namespace
}  // namespace epochmeter::collect::nvml
