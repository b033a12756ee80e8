// SPDX-License-Identifier: Apache-2.0
#include "collect/job_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace epochmeter::collect {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class JobChoiceTest : public testing::Test {
 protected:
  JobChoiceTest() {
    for (int i = 0; i < 4; ++i) {
      const std::string digit = std::to_string(i);
      gpus_.push_back({.uuid = "GPU-" + digit, .bus_id = "0000:0" + digit + ":00.0", .model = "A"});
    }
  }

  // `environ_text` with ';' between the variables.
  static JobProcess Process(int pid, int parent, const std::string& name,
                            std::string environ_text = "") {
    std::replace(environ_text.begin(), environ_text.end(), ';', '\0');
    ProcStat stat;
    stat.key = {.pid = pid, .start_ticks = 1};
    stat.parent = parent;
    return DescribeJobProcess(stat, name + "\n", environ_text);
  }

  const JobChoice::Answer& Decide(std::vector<JobProcess> processes) {
    return choice_.Decide(processes, gpus_, 580);
  }

  std::vector<GpuIdentity> gpus_;
  JobChoice choice_;
};

TEST_F(JobChoiceTest, TakesWhatTheRootSays) {
  const auto& answer = Decide({Process(10, 1, "python3", "CUDA_VISIBLE_DEVICES=1,3")});
  EXPECT_TRUE(answer.restricted);
  EXPECT_THAT(answer.gpus, ElementsAre(1, 3));
}

TEST_F(JobChoiceTest, WithoutAnyWordEveryGpuMayBeMeant) {
  EXPECT_FALSE(Decide({Process(10, 1, "python3", "HOME=/root")}).restricted);
}

TEST_F(JobChoiceTest, AnEmptyListMeansNone) {
  const auto& answer = Decide({Process(10, 1, "python3", "CUDA_VISIBLE_DEVICES=")});
  EXPECT_TRUE(answer.restricted);
  EXPECT_THAT(answer.gpus, IsEmpty());
  EXPECT_THAT(answer.note, HasSubstr("empty"));
}

TEST_F(JobChoiceTest, RanksAreHeardInsteadOfTheirLauncher) {
  EXPECT_FALSE(Decide({Process(10, 1, "python3")}).restricted) << "no rank yet";
  const auto& answer =
      Decide({Process(10, 1, "python3"),
              Process(11, 10, "python3", "PADDLE_TRAINER_ID=0;FLAGS_selected_gpus=0"),
              Process(12, 10, "python3", "PADDLE_TRAINER_ID=1;FLAGS_selected_gpus=2")});
  EXPECT_TRUE(answer.restricted);
  EXPECT_THAT(answer.gpus, ElementsAre(0, 2));
}

TEST_F(JobChoiceTest, ALauncherWithARankOfItsNodeIsStillALauncher) {
  const auto& answer =
      Decide({Process(10, 1, "python3", "PADDLE_TRAINER_ID=1"),
              Process(11, 10, "python3", "PADDLE_TRAINER_ID=4;CUDA_VISIBLE_DEVICES=2")});
  EXPECT_TRUE(answer.restricted);
  EXPECT_THAT(answer.gpus, ElementsAre(2));
}

TEST_F(JobChoiceTest, RanksWithoutAChoiceMayUseEveryGpu) {
  EXPECT_FALSE(Decide({Process(10, 1, "torchrun"), Process(11, 10, "python3", "RANK=0"),
                       Process(12, 10, "python3", "RANK=1")})
                   .restricted);
}

TEST_F(JobChoiceTest, AShellDoesNotSpeakForItsChildren) {
  const auto& answer =
      Decide({Process(10, 1, "bash"), Process(11, 10, "python3", "CUDA_VISIBLE_DEVICES=3")});
  EXPECT_TRUE(answer.restricted);
  EXPECT_THAT(answer.gpus, ElementsAre(3));
}

TEST_F(JobChoiceTest, AHelperWithoutGpusDoesNotHideThoseOfTheTraining) {
  EXPECT_FALSE(
      Decide({Process(10, 1, "python3"), Process(11, 10, "python3", "CUDA_VISIBLE_DEVICES=-1")})
          .restricted);
}

TEST_F(JobChoiceTest, ARankThatEndedKeepsItsGpu) {
  Decide({Process(10, 1, "torchrun"), Process(11, 10, "python3", "RANK=0;CUDA_VISIBLE_DEVICES=0"),
          Process(12, 10, "python3", "RANK=1;CUDA_VISIBLE_DEVICES=1")});
  EXPECT_THAT(Decide({Process(10, 1, "torchrun"),
                      Process(11, 10, "python3", "RANK=0;CUDA_VISIBLE_DEVICES=0")})
                  .gpus,
              ElementsAre(0, 1));
  EXPECT_THAT(Decide({}).gpus, ElementsAre(0, 1)) << "the end of the job changes nothing";
}

}  // namespace
}  // namespace epochmeter::collect
