// SPDX-License-Identifier: Apache-2.0
// Bars, and what is sure only later.
#include <gtest/gtest.h>

#include <string>

#include "ingest/log/progress.h"
#include "ingest/log/progress_test_util.h"

namespace epochmeter::ingest::log {
namespace {

using Texts = RecordsOf::Texts;

// A state of a bar of twenty steps.
std::string Bar(const std::string& name, int step, const std::string& loss) {
  return name + std::to_string(step * 5) + "%|###   | " + std::to_string(step) +
         "/20 [00:10<00:30, 2.00s/it, loss=" + loss + "]";
}

TEST(ProgressBars, ABarOfAnEpochIsItsLastState) {
  const RecordsOf log(Bar("Epoch 0: ", 1, "4.5") + "\r" + Bar("Epoch 0: ", 10, "4.25") + "\r" +
                      Bar("Epoch 0: ", 20, "4.0") + "\n" + Bar("Epoch 1: ", 1, "3.5") + "\r" +
                      Bar("Epoch 1: ", 20, "3.25") + "\n");
  EXPECT_EQ(log.trained, (Texts{"T1 e0 i20/20 l4", "T2 e1 i20/20 l3.25"}));
}

TEST(ProgressBars, ABarThatIsNotFullCountsAtTheEndOnly) {
  const RecordsOf log(Bar("Epoch 0: ", 20, "4.0") + "\n" + Bar("Epoch 1: ", 1, "3.5") + "\r" +
                      Bar("Epoch 1: ", 7, "3.25") + "\n");
  EXPECT_EQ(log.trained, (Texts{"T1 e0 i20/20 l4", "T2 e1 i7/20 l3.25"}));
}

TEST(ProgressBars, OfABarOverTheWholeTrainingEachStepCountsOnce) {
  const RecordsOf log(Bar("steps: ", 1, "4.5") + "\r" + Bar("steps: ", 2, "4.5") + "\r" +
                      Bar("steps: ", 2, "4.25") + "\r" + Bar("steps: ", 3, "4.0") + "\n");
  EXPECT_EQ(log.trained, (Texts{"T1 s1/20 l4.5", "T1 s2/20 l4.25", "T1 s3/20 l4"}));
}

TEST(ProgressBars, TheEpochAboveIsTheBars) {
  const RecordsOf log("Epoch 1/2\n" + Bar("", 10, "4.5") + "\r" + Bar("", 20, "4.25") +
                      "\nEpoch 2/2\n" + Bar("", 10, "3.5") + "\r" + Bar("", 20, "3.25") + "\n");
  EXPECT_EQ(log.trained, (Texts{"T2 h1 i20/20 l4.25", "T4 h2 i20/20 l3.25"}));
}

TEST(ProgressBars, BarsOfEvaluationsAndWithoutFiguresAreNone) {
  const std::string others =
      "Validation: 100%|###| 8/8 [00:02<00:00, 4.00it/s, loss=4.5]\n"
      "Downloading: 100%|###| 64/64 [00:10<00:00, 2.00s/it]\n";
  const RecordsOf log("Epoch 1/2\n" + Bar("", 20, "4.5") + "\n" + others + "Epoch 2/2\n" +
                      Bar("", 20, "3.5") + "\n" + others);
  EXPECT_EQ(log.trained, (Texts{"T2 h1 i20/20 l4.5", "T6 h2 i20/20 l3.5"}));
}

TEST(ProgressBars, WithoutAnEpochABarsNameTellsAnEvaluation) {
  const std::string epoch =
      "Training: 100%|###| 20/20 [00:10<00:00, 2.00it/s, loss=4.5]\n"
      "Validation: 100%|###| 8/8 [00:02<00:00, 4.00it/s, loss=4.25]\n";
  EXPECT_EQ(RecordsOf(epoch + epoch).trained, (Texts{"T1 s20/20 l4.5", "T3 s20/20 l4.5"}));
}

TEST(ProgressHeld, FiguresWithoutALossNeedASecondLine) {
  EXPECT_EQ(RecordsOf("step: 10, lr: 0.5\n").trained, Texts{});
  EXPECT_EQ(RecordsOf("step: 10, lr: 0.5\nstep: 20, lr: 0.25\n").trained,
            (Texts{"T1 s10 lr0.5", "T2 s20 lr0.25"}));
}

TEST(ProgressHeld, CountersAloneAreRecordsWhereNothingElseIs) {
  const std::string counters = "step 10\nstep 20\nstep 30\nstep 40\n";
  EXPECT_EQ(RecordsOf(counters).trained, (Texts{"T1 s10", "T2 s20", "T3 s30", "T4 s40"}));
  EXPECT_EQ(RecordsOf("step 10\nstep 20\n").trained, Texts{});
  EXPECT_EQ(RecordsOf("step 10\nstep 10\nstep 10\nstep 10\n").trained, Texts{});
  const RecordsOf both(counters + "iter: 50, loss: 4.5\niter: 60, loss: 4.25\n");
  EXPECT_EQ(both.trained, (Texts{"T5 s50 l4.5", "T6 s60 l4.25"}));
}

TEST(ProgressHeld, EpochsAreRecordsWhereNoStepsArePrinted) {
  const RecordsOf epochs("Epoch 1 average loss: 4.5\nEpoch 2 average loss: 4.25\n");
  EXPECT_EQ(epochs.trained, (Texts{"T1 e1 l4.5", "T2 e2 l4.25"}));
  const RecordsOf steps(
      "epoch 1 step 10 loss: 4.5\nEpoch 1 average loss: 4.5\n"
      "epoch 2 step 20 loss: 4.25\nEpoch 2 average loss: 4.25\n");
  EXPECT_EQ(steps.trained.size(), 2u);
}

TEST(ProgressHeld, WhenNothingComesWhatIsDecidedGoesOut) {
  RecordsOf log;
  log.Feed("step 10 loss 4.5\n");
  EXPECT_EQ(log.all, Texts{});
  log.engine().Idle();
  EXPECT_EQ(log.all, (Texts{"T1 s10 l4.5"}));
  log.engine().Idle();
  log.Feed("lr: 0.5\nstep 20 loss 4.25\nstep 30 ");
  log.engine().Idle();
  EXPECT_EQ(log.all, (Texts{"T1 s10 l4.5", "T3 s20 l4.25"}));
  log.Feed("loss 4.0");
  log.engine().Finish();
  EXPECT_EQ(log.all, (Texts{"T1 s10 l4.5", "T3 s20 l4.25", "T4 s30 l4"}));
  EXPECT_EQ(log.engine().counts().records, 3u);
}

TEST(ProgressHeld, FiguresThatWaitGoOutWhenTheyAreLikely) {
  RecordsOf log;
  log.Feed("step: 10, lr: 0.5\n");
  log.engine().Idle();
  EXPECT_EQ(log.all, Texts{});
  log.Feed("step: 20, lr: 0.25\n");
  log.engine().Idle();
  EXPECT_EQ(log.all, (Texts{"T1 s10 lr0.5", "T2 s20 lr0.25"}));
}

}  // namespace
}  // namespace epochmeter::ingest::log
