// SPDX-License-Identifier: Apache-2.0
#include "diagnose/scalars.h"

#include <gtest/gtest.h>

#include "diagnose/test_run.h"

namespace epochmeter::diagnose {
namespace {

TEST(Scalars, KnowLossesByTheirNames) {
  for (const char* name : {"loss", "Loss", "train_loss", "loss_d", "lossG", "val/loss", "lm loss",
                           "nll", "perplexity", "cost", "MSE"}) {
    EXPECT_TRUE(IsLoss(name)) << name;
  }
  for (const char* name : {"loss_scale", "loss_weight", "batch_cost", "reader_cost", "accuracy",
                           "glossary", "lr", "", "best_loss"}) {
    EXPECT_FALSE(IsLoss(name)) << name;
  }
}

TEST(Scalars, KnowLearningRatesAndLossScales) {
  for (const char* name : {"lr", "learning_rate", "train/lr", "lr-AdamW", "LearningRate"}) {
    EXPECT_TRUE(IsLearningRate(name)) << name;
  }
  EXPECT_FALSE(IsLearningRate("false_rate"));
  EXPECT_TRUE(IsLossScale("loss_scale"));
  EXPECT_TRUE(IsLossScale("amp/scale"));
  EXPECT_FALSE(IsLossScale("logit_scale"));
}

TEST(Scalars, KeepStepsApartFromTheMeanOfAnEpoch) {
  TestRun run(60);
  run.Train({.epochs = 1, .steps = 3, .loss = [](int step) { return step; }});
  run.Event(5, model::EventKind::kEpochEnd, 0, {}, {{"scalar.loss", 9.0}});
  const Facts& facts = run.Finish();
  const auto series = ScalarsOf(facts.ranks().at(0));
  ASSERT_EQ(series.size(), 2U);
  EXPECT_EQ(series[0].told_by, model::EventKind::kStep);
  ASSERT_EQ(series[0].points.size(), 3U);
  EXPECT_EQ(series[0].points[2].step, 3);
  EXPECT_EQ(series[0].points[2].value, 2);
  EXPECT_EQ(series[1].points.at(0).value, 9);
  EXPECT_EQ(PlaceOf(series[0].points[2], facts.run()).en, "step 3 (epoch 0)");
}

TEST(Scalars, KnowWhatIsOfEvaluation) {
  EXPECT_TRUE(IsOfEvaluation({.name = "val_loss", .points = {}}));
  EXPECT_TRUE(
      IsOfEvaluation({.name = "loss", .told_by = model::EventKind::kPhaseEnd, .points = {}}));
  EXPECT_FALSE(IsOfEvaluation({.name = "interval_loss", .points = {}}));
}

}  // namespace
}  // namespace epochmeter::diagnose
