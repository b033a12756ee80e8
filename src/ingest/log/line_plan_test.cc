// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/line_plan.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace epochmeter::ingest::log {
namespace {

LinePlan PlanOf(std::string_view text) {
  Skeleton skeleton;
  ReadSkeleton(text, &skeleton);
  return MakePlan(text, ReadLinePrefix(text), skeleton);
}

// "loss train: epoch step_in_epoch/steps_per_epoch loss": tier, kind, roles that mean something.
std::string Said(std::string_view text) {
  static constexpr std::array kTiers = {"none", "extra", "header", "counter", "figures", "loss"};
  static constexpr std::array kKinds = {"train", "eval", "summary", "inference"};
  const LinePlan plan = PlanOf(text);
  if (plan.tier == Tier::kNone) return "none";
  std::string said = kTiers[static_cast<size_t>(plan.tier)];
  said += std::string(" ") + kKinds[static_cast<size_t>(plan.kind)] + ":";
  for (const FieldPlan& field : plan.fields) {
    if (field.role == Role::kOther && field.total_role == Role::kOther) continue;
    said += " " + std::string(RoleName(field.role));
    if (field.total_role != Role::kOther) said += "/" + std::string(RoleName(field.total_role));
  }
  return said;
}

struct Case {
  std::string_view line, said;
};
void Check(std::initializer_list<Case> cases) {
  for (const auto& [line, said] : cases) EXPECT_EQ(Said(line), said) << line;
}

TEST(LinePlan, LinesOfTraining) {
  Check({{"Epoch: [3][ 20/312] loss 0.5 lr 1e-3",
          "loss train: epoch step_in_epoch/steps_per_epoch loss lr"},
         {"epoch 2/10, step 30, loss: 0.5", "loss train: epoch/epochs step loss"},
         {"[TRAIN] epoch: 1, iter: 20/80, loss: 0.5, lr: 0.1, batch_cost: 0.25, reader_cost: 0.01",
          "loss train: epoch step_in_epoch/steps_per_epoch loss lr step_time data_time"},
         {"{'loss': 0.5, 'learning_rate': 1e-05, 'epoch': 0.25}", "loss train: loss lr epoch"},
         {"step 50, policy=5.9 mse=0.2 reg=0.4 total=6.5", "loss train: step metric loss"},
         {"Epoch 1 Batch 50 Loss 4.5 Accuracy 0.1", "loss train: epoch step_in_epoch loss metric"},
         {"train: epoch 0, iter 20, loss: 6.5", "loss train: epoch step loss"},
         {"iteration 20/ 80 | loss: 0.5 | grad norm: 1.5",
          "loss train: step/total_steps loss grad_norm"},
         {"[8/100], [10/11], step: 98, loss: 0.5",
          "loss train: epoch/epochs step_in_epoch/steps_per_epoch step loss"},
         {"epoch/iter: 9/2579  total_loss: 36.75  lr: 3.5e-04", "loss train: epoch/step loss lr"},
         {"{'loss': 0.5, 'global_step/max_steps': '12/94'}", "loss train: loss step/total_steps"}});
}

TEST(LinePlan, CountersWithoutNames) {
  Check({{" 181/2000: episode: 1, reward: -21.5, loss: 4.5",
          "loss train: step/total_steps metric loss"},
         {"Epoch 1.25 / 8, i = 100 / 3200, loss = 3.5",
          "loss train: epoch/epochs step/total_steps loss"},
         {"Process 100/3161(3.1635%) average objf: -0.5, epoch 0",
          "loss train: step_in_epoch/steps_per_epoch loss epoch"},
         {"epoch 0, total_step 2050, total loss is 48.5", "loss train: epoch step loss"},
         {"[12]\ttrain-logloss:0.25", "loss train: step loss"}});
}

TEST(LinePlan, FiguresWithoutALoss) {
  Check({{"Batch [50] Speed: 2613.5 samples/sec Train-accuracy=0.25",
          "figures train: step_in_epoch throughput metric"},
         {"step: 20, lr: 1e-3, ips: 126.5 samples/s", "figures train: step lr throughput"},
         {"step 20", "counter train: step"},
         {"Epoch 3/10", "header train: epoch/epochs"},
         {"lr: 1e-3, grad_norm: 0.5", "extra train: lr grad_norm"}});
}

TEST(LinePlan, WhatIsNoTrainingSaysSo) {
  Check({{"[EVAL] epoch: 1, step: 20, loss: 0.5", "loss eval: epoch step loss"},
         {"[ITER 7000] Evaluating train: L1 0.5 PSNR 5.5", "figures eval: step metric"},
         {"epoch 2: val_loss 0.5, val_acc 0.25", "extra eval: epoch eval_metric eval_metric"}});
  EXPECT_EQ(PlanOf("Test: [10/40] loss 0.5").kind, RecordKind::kEval);
  EXPECT_EQ(PlanOf("Epoch 3 finished, average loss: 0.5").kind, RecordKind::kSummary);
  EXPECT_EQ(PlanOf("predict step 5/10 - 8ms/step").kind, RecordKind::kInference);
}

TEST(LinePlan, TextsWithNumbersAreNone) {
  for (const std::string_view line :
       {"", "Loading checkpoint 3 of 8", "Saved model to /tmp/out/step_50.pt", "127.0.0.1 - GET /",
        "  print('epoch %d loss %f' % (1, 0.5))", "python train.py --epochs 3 --lr 0.1 --loss 5",
        "PID 4711 has 16 threads", "Downloading: 45.2MB"}) {
    EXPECT_LE(PlanOf(line).tier, Tier::kNone) << line;
  }
}

TEST(LinePlan, Bars) {
  const LinePlan own = PlanOf("Epoch 2:  50%|█████     | 10/20 [00:20<00:20, 2.00s/it, loss=0.5]");
  EXPECT_TRUE(own.bar && own.has_epoch);
  EXPECT_EQ(own.tier, Tier::kLoss);
  const LinePlan plain = PlanOf(" 50%|█████     | 10/20 [00:20<00:20, 2.00s/it, loss=0.5]");
  EXPECT_TRUE(plain.bar && !plain.has_epoch);
  EXPECT_FALSE(PlanOf("Epoch 2: 10/20, loss=0.5").bar);
}

TEST(LinePlan, AMessageBehindABarIsReadAlone) {
  const std::string_view line =
      "  1%|1  | 10/1000 [00:10<16:30,  1.00s/it]{'loss': 0.5, 'epoch': 0.25}";
  EXPECT_EQ(Said(line), "loss train: loss epoch");
  EXPECT_FALSE(PlanOf(line).bar);
}

TEST(LinePlan, MarksThatTheRecordsAreMadeBy) {
  EXPECT_TRUE(PlanOf("Epoch: [3][20/312] loss 0.5").pair_in_epoch);
  EXPECT_FALSE(PlanOf("epoch 3, iter 20/312, loss 0.5").pair_in_epoch);
  EXPECT_TRUE(PlanOf("[12]\ttrain-logloss:0.25").bare_step);
  EXPECT_TRUE(PlanOf("Eval begin...").begins_eval);
  EXPECT_TRUE(PlanOf("| fps | 141 |").box);
  EXPECT_TRUE(PlanOf("epoch,step,loss,lr").columns);
  EXPECT_TRUE(PlanOf("  3   0.25   0.5").rows);
  EXPECT_TRUE(PlanOf("torch.cuda.OutOfMemoryError: CUDA out of memory.").events);
  EXPECT_FALSE(PlanOf("epoch 3 loss 0.5").events);
}

TEST(LinePlan, UnitsBecomeSi) {
  const LinePlan plan = PlanOf("step 3, loss 0.5, time: 250 ms, memory: 2 GiB");
  ASSERT_EQ(plan.fields.size(), 4u);
  EXPECT_DOUBLE_EQ(plan.fields[2].factor, 1e-3);
  EXPECT_DOUBLE_EQ(plan.fields[3].factor, 1024.0 * 1024 * 1024);
  EXPECT_EQ(plan.fields[3].unit, "GiB");
}

TEST(LinePlan, RatesInNamesAreTimesOfSteps) {
  const LinePlan plan = PlanOf("step 3, loss 0.5, ms_per_step: 250, s/it: 0.25");
  ASSERT_EQ(plan.fields.size(), 4u);
  EXPECT_EQ(plan.fields[2].role, Role::kStepTime);
  EXPECT_DOUBLE_EQ(plan.fields[2].factor, 1e-3);
  EXPECT_EQ(plan.fields[3].role, Role::kStepTime);
}

TEST(LinePlan, LinesOfOneFamilyBeginAlike) {
  const LinePlan line = PlanOf("epoch 3, loss: 0.5");
  EXPECT_EQ(line.family, PlanOf("epoch 4, loss: 0.25, acc: 0.5").family);
  EXPECT_NE(line.shape, PlanOf("epoch 4, loss: 0.25, acc: 0.5").shape);
  EXPECT_EQ(line.shape, PlanOf("epoch 14, loss: 0.25").shape);
  EXPECT_NE(line.family, PlanOf("round 4, loss: 0.25").family);
}

}  // namespace
}  // namespace epochmeter::ingest::log
