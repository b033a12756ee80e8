// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/progress.h"

#include <gtest/gtest.h>

#include <string>

#include "ingest/log/progress_test_util.h"

namespace epochmeter::ingest::log {
namespace {

using Texts = RecordsOf::Texts;

TEST(Progress, RecordsOfSeveralRanksComeInTheOrderOfTheirLines) {
  const RecordsOf log(
      "[rank0]: step 1 loss 4.5\n"
      "[rank1]: step 1 loss 4.25\n"
      "[rank0]: lr: 0.5\n"
      "[rank1]: step 2 loss 3.5\n"
      "[rank1]: lr: 0.25\n"
      "[rank0]: step 2 loss 3.25\n");
  EXPECT_EQ(log.trained, (Texts{"T1-3 r0 s1 l4.5 lr0.5", "T2 r1 s1 l4.25", "T4-5 r1 s2 l3.5 lr0.25",
                                "T6 r0 s2 l3.25"}));
}

TEST(Progress, FiguresBehindARecordBelongToIt) {
  const RecordsOf log(
      "step 1 loss 4.5\n"
      "a remark\n"
      "lr: 0.5\n"
      "step 2 loss 4.25\n"
      "step 3 loss 3.5\n"
      "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"
      "lr: 0.25\n");
  EXPECT_EQ(log.trained, (Texts{"T1-3 s1 l4.5 lr0.5", "T4 s2 l4.25", "T5 s3 l3.5"}));
}

TEST(Progress, LinesWithTheSameStepAreOneRecord) {
  const RecordsOf log(
      "iter: 10, lr: 0.5, ips: 12.5\n"
      "step=10 loss=4.5\n"
      "iter: 20, lr: 0.25, ips: 12.25\n"
      "step=20 loss=4.25\n");
  EXPECT_EQ(log.trained, (Texts{"T2 s10 l4.5 lr0.5", "T4 s20 l4.25 lr0.25"}));
}

TEST(Progress, TwoHandlersOfALoggerSayTheSameOnce) {
  const RecordsOf log(
      "INFO:x:step 1 loss 4.5\n"
      "INFO:x:step 1 loss 4.5\n"
      "INFO:x:step 2 loss 4.25\n"
      "INFO:x:step 2 loss 4.25\n"
      "INFO:x:step 3 loss 4.25\n");
  EXPECT_EQ(log.trained, (Texts{"T1-2 s1 l4.5", "T3-4 s2 l4.25", "T5 s3 l4.25"}));
}

TEST(Progress, AnEpochAboveGoesWithWhatFollows) {
  const RecordsOf log(
      "Epoch 1/2\n"
      "step 10/20 - loss: 4.5\n"
      "step 20/20 - loss: 4.25\n"
      "Epoch 2/2\n"
      "step 10/20 - loss: 3.5\n");
  EXPECT_EQ(log.trained, (Texts{"T2 h1 i10/20 l4.5", "T3 h1 i20/20 l4.25", "T5 h2 i10/20 l3.5"}));
}

TEST(Progress, AnEpochAboveMakesALossARecord) {
  const RecordsOf log(
      "Epoch 1/3\n"
      "loss: 4.5\n"
      "Epoch 2/3\n"
      "loss: 4.25\n"
      "Epoch 3/3\n"
      "loss: 3.5\n");
  EXPECT_EQ(log.trained, (Texts{"T2 h1 l4.5", "T4 h2 l4.25", "T6 h3 l3.5"}));
}

TEST(Progress, EvaluationsAreToldByWhatBeginsThem) {
  const RecordsOf log(
      "Epoch 1/2\n"
      "step 10/20 - loss: 4.5\n"
      "step 20/20 - loss: 4.25\n"
      "Eval begin...\n"
      "step 5/8 - loss: 4.125\n"
      "step 8/8 - loss: 4.0\n"
      "Epoch 2/2\n"
      "step 10/20 - loss: 3.5\n"
      "step 20/20 - loss: 3.25\n");
  EXPECT_EQ(log.trained, (Texts{"T2 h1 i10/20 l4.5", "T3 h1 i20/20 l4.25", "T8 h2 i10/20 l3.5",
                                "T9 h2 i20/20 l3.25"}));
  EXPECT_EQ(log.others.size(), 2u);
}

TEST(Progress, TheLineOfAWholeEpochIsNone) {
  const RecordsOf log(
      "epoch 1 step 10 loss 4.5\n"
      "epoch 1 step 20 loss 4.25\n"
      "epoch 1 loss 4.375\n"
      "epoch 2 step 10 loss 3.5\n"
      "epoch 2 step 20 loss 3.25\n"
      "epoch 2 loss 3.375\n");
  ASSERT_EQ(log.trained.size(), 4u);
  EXPECT_EQ(log.trained.back().substr(0, 3), "T5 ");
}

TEST(Progress, AStepThatGoesBackIsAnotherStart) {
  const RecordsOf log(
      "step 10 loss 4.5\n"
      "step 20 loss 4.25\n"
      "step 10 loss 4.125\n"
      "step 20 loss 4.0\n");
  EXPECT_EQ(log.trained,
            (Texts{"T1 s10 l4.5", "T2 s20 l4.25", "T3 +1 s10 l4.125", "T4 +1 s20 l4"}));
  // Not with the next epoch.
  const RecordsOf epochs(
      "Epoch: [0][10/20] loss 4.5\n"
      "Epoch: [0][20/20] loss 4.25\n"
      "Epoch: [1][10/20] loss 4.125\n"
      "Epoch: [0][10/20] loss 4.0\n");
  EXPECT_EQ(epochs.trained, (Texts{"T1 e0 i10/20 l4.5", "T2 e0 i20/20 l4.25", "T3 e1 i10/20 l4.125",
                                   "T4 +1 e0 i10/20 l4"}));
}

TEST(Progress, TheSecondEpochTellsWhatStepsCount) {
  const RecordsOf again(
      "epoch: 0, step: 10, loss: 4.5\n"
      "epoch: 0, step: 20, loss: 4.25\n"
      "epoch: 1, step: 10, loss: 3.5\n"
      "epoch: 1, step: 20, loss: 3.25\n");
  EXPECT_EQ(again.all, (Texts{"T1 e0 s10 l4.5", "T2 e0 i20 l4.25", "steps are of the epoch",
                              "T3 e1 i10 l3.5", "T4 e1 i20 l3.25"}));
  const RecordsOf on(
      "epoch: 0, iter: 10/40, loss: 4.5\n"
      "epoch: 0, iter: 20/40, loss: 4.25\n"
      "epoch: 1, iter: 30/40, loss: 3.5\n");
  EXPECT_EQ(on.all, (Texts{"T1 e0 i10/40 l4.5", "T2 e0 s20/40 l4.25", "steps are of the run",
                           "T3 e1 s30/40 l3.5"}));
}

TEST(Progress, TheTimeLeftTellsWhatAPairCounts) {
  const RecordsOf run("epoch: 0, iter: 10/40, eta: 0:01:00, time: 2.0, loss: 4.5\n");
  EXPECT_EQ(run.trained, (Texts{"T1 e0 s10/40 l4.5"}));
  const RecordsOf epoch("epoch: 0, iter: 10/40, eta: 0:10:00, time: 2.0, loss: 4.5\n");
  EXPECT_EQ(epoch.trained, (Texts{"T1 e0 i10/40 l4.5"}));
}

TEST(Progress, RowsOfABoxAreOneRecord) {
  const RecordsOf log(
      "-------------------\n"
      "| fps      | 90   |\n"
      "| iterations | 2  |\n"
      "| loss     | 0.5  |\n"
      "| lr       | 0.25 |\n"
      "-------------------\n"
      "-------------------\n"
      "| fps      | 91   |\n"
      "| iterations | 3  |\n"
      "| loss     | 0.25 |\n"
      "| lr       | 0.25 |\n"
      "-------------------\n");
  EXPECT_EQ(log.trained, (Texts{"T3-5 s2 l0.5 lr0.25", "T9-11 s3 l0.25 lr0.25"}));
}

TEST(Progress, AnEvaluationWithoutACounterBelongsToTheEpochBefore) {
  const RecordsOf log(
      "{'loss': 2.5, 'epoch': 0.5}\n"
      "{'loss': 1.5, 'epoch': 1.0}\n"
      "{'eval_loss': 0.5, 'eval_runtime': 12.5, 'epoch': 1.0}\n"
      "{'loss': 0.75, 'epoch': 1.5}\n");
  EXPECT_EQ(log.all, (Texts{"T1 e0.5 l2.5", "T2 e1 l1.5", "E3 e1", "T4 e1.5 l0.75"}));
  const RecordsOf plain(
      "Epoch 1/2\n"
      "step 1 loss 2.5\n"
      "Validation loss: 1.5 accuracy: 0.5\n"
      "Validation AUC: 0.25\n"
      "step 2 loss 2.25\n"
      "Validation loss: 1.25 accuracy: 0.75\n"
      "Validation AUC: 0.5\n"
      "Validation loss: 1.125 accuracy: 0.75\n");
  EXPECT_EQ(plain.trained, (Texts{"T2 h1 s1 l2.5", "T5 h1 s2 l2.25"}));
  EXPECT_EQ(plain.others, (Texts{"E3-4 h1", "E6-7 h1", "E8 h1"}));
}

TEST(Progress, ALinePerEpochBehindItsStepsIsNoRecord) {
  const RecordsOf log(
      "train.py: [8/100], [10/11], step: 98, batch_loss: 0.5, lr:0.25\n"
      "train.py: [8/100], train_loss: 0.75, lr: 0.25\n"
      "train.py: [9/100], [0/11], step: 99, batch_loss: 0.5, lr:0.25\n"
      "train.py: [9/100], [10/11], step: 109, batch_loss: 1.5, lr:0.25\n"
      "train.py: [9/100], train_loss: 0.5, lr: 0.25\n"
      "train.py: [10/100], [0/11], step: 110, batch_loss: 1.5, lr:0.25\n");
  EXPECT_EQ(log.trained.size(), 4u);
}

TEST(Progress, LossesOfOtherNamesBelowAnEpochAreOneRecord) {
  const RecordsOf log(
      "****epoch: 18 ****\n"
      "total loss: 3505.5\n"
      "loss1:207.5, loss2: 1186.5\n"
      "x loss: 0.5\n"
      "****epoch: 19 ****\n"
      "total loss: 3504.5\n"
      "loss1:206.5, loss2: 1185.5\n"
      "x loss: 0.25\n");
  EXPECT_EQ(log.trained, (Texts{"T2-4 h18 l3505.5", "T6-8 h19 l3504.5"}));
}

TEST(Progress, RowsMayHaveCellsThatAreNoNumbers) {
  const RecordsOf log(
      "Epoch ,FinishTime     ,LR    ,loss\n"
      "    0 ,04.29_01:45:54 ,0.5 , 4.5\n"
      "    1 ,04.29_02:22:17 ,0.25 ,  3.5\n");
  EXPECT_EQ(log.trained, (Texts{"T2 e0 l4.5 lr0.5", "T3 e1 l3.5 lr0.25"}));
}

TEST(Progress, StepsBelowAWordForValidationAreNoTraining) {
  const RecordsOf log(
      "Train:\nstep 1 loss 2.5\nstep 2 loss 1.5\n"
      "Valid:\nstep 1 loss 1.75\nstep 2 loss 1.25\n"
      "TRAIN:\nstep 1 loss 1.5\nstep 2 loss 1.0\n");
  EXPECT_EQ(log.trained, (Texts{"T2 s1 l2.5", "T3 s2 l1.5", "T8 +1 s1 l1.5", "T9 +1 s2 l1"}));
  EXPECT_EQ(log.others.size(), 2u);
}

TEST(Progress, FiguresOfAnEvaluationAreNotTheTrainings) {
  const RecordsOf log(
      "Epoch: [0] [20/40] loss: 2.5\n * Acc@1 10.5 Acc@5 30.25\n"
      "Epoch: [1] [20/40] loss: 2.25\nEvaluating...\nmAP: 0.5, recall: 0.25\n");
  EXPECT_EQ(log.all, (Texts{"T1 e0 i20/40 l2.5", "E2 h0", "T3 e1 i20/40 l2.25", "E5 h1"}));
}

TEST(Progress, SettingsAndFilesWithNamesOfEvaluationsAreNone) {
  const RecordsOf log(
      "eval_loss_weight: 0.5\nval_loss_coef=0.1\nSaved to /tmp/eval_loss=2.0.ckpt\n"
      "Loading checkpoint val_loss=0.23-epoch=3.ckpt\nStarting evaluation at step 5\n"
      "step 1 loss 2.5\nstep 2 loss 1.5\n");
  EXPECT_EQ(log.all, (Texts{"T6 s1 l2.5", "T7 s2 l1.5"}));
}

TEST(Progress, NoNumberIsMadeOfANameWithNan) {
  const RecordsOf log(
      "step 1 loss 2.5 | number of nan iterations:   0 |\n"
      "step 2 loss nan | number of nan iterations:   1 |\n");
  EXPECT_EQ(log.trained, (Texts{"T1 s1 l2.5", "T2 s2 lnan"}));
  const RecordsOf pairs("epoch 1 step: 1k/90k loss 0.5\nepoch 2 step: 2k/90k loss 0.25\n");
  EXPECT_EQ(pairs.trained, (Texts{"T1 e1 l0.5", "T2 e2 l0.25"}));
}

TEST(Progress, CountersInThousandsAreWhole) {
  const RecordsOf log(
      "[Iter: 0.1k / lr: 1.00e-4] Time: 59.98 (Data: 49.06) loss: 33.5\n"
      "[Iter: 0.7k / lr: 1.00e-4] Time: 59.98 (Data: 49.06) loss: 32.5\n"
      "[Iter: 12k / lr: 1.00e-4] Time: 59.98 (Data: 49.06) loss: 31.5\n");
  EXPECT_EQ(log.trained, (Texts{"T1 s100 l33.5 lr0.0001", "T2 s700 l32.5 lr0.0001",
                                "T3 s12000 l31.5 lr0.0001"}));
}

TEST(Progress, AnEvaluationStandsBehindTheRecordBeforeIt) {
  const RecordsOf log(
      "epoch 1 step 1 loss 2.5\n"
      "epoch 1 val_loss: 1.5\n"
      "epoch 2 step 2 loss 2.25\n"
      "epoch 2 val_loss: 1.25\n");
  EXPECT_EQ(log.all, (Texts{"T1 e1 s1 l2.5", "E2 e1", "T3 e2 s2 l2.25", "E4 e2"}));
}

TEST(Progress, SettingsOfEvaluationsAreNone) {
  const RecordsOf log(
      "EVAL_PERIOD: 5000\n"
      "test: 0.9\n"
      "Train on 40000 samples, validate on 10000 samples\n"
      "eval_batch_step: [0, 2000]\n"
      "step 1 loss 2.5\n"
      "step 2 loss 2.25\n");
  EXPECT_EQ(log.all, (Texts{"T5 s1 l2.5", "T6 s2 l2.25"}));
}

}  // namespace
}  // namespace epochmeter::ingest::log
