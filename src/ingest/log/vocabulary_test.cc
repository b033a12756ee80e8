// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/vocabulary.h"

#include <gtest/gtest.h>

namespace epochmeter::ingest::log {
namespace {

TEST(Vocabulary, NamesMeanTheSameHoweverTheyAreWritten) {
  for (const std::string_view key : {"Learning Rate", "learning-rate", "'learning_rate'", "LR"}) {
    EXPECT_EQ(MeaningOf(key).role, Role::kLearningRate) << key;
  }
  EXPECT_EQ(NormalKey("\"Train/Total Loss\""), "train_total_loss");
  EXPECT_EQ(NormalKey("[lr]"), "lr");
  EXPECT_EQ(NormalKey("--"), "");
}

struct Named {
  std::string_view key;
  Role role;
};

TEST(Vocabulary, Counters) {
  const Named cases[] = {{"epoch", Role::kEpoch},           {"END epoch", Role::kEpoch},
                         {"global step", Role::kStep},      {"num_updates", Role::kStep},
                         {"TimestepsSoFar", Role::kStep},   {"total_timesteps", Role::kStep},
                         {"Current Iter", Role::kStep},     {"batch count", Role::kStepInEpoch},
                         {"batch idx", Role::kStepInEpoch}, {"训练次数", Role::kStep}};
  for (const auto& [key, role] : cases)
    EXPECT_EQ(RoleName(MeaningOf(key).role), RoleName(role)) << key;
}

TEST(Vocabulary, WhatOnlyLooksLikeACounter) {
  for (const std::string_view key : {"skipped iterations", "warmup steps", "save_steps", "max iter",
                                     "num_workers", "seed", "best epoch"}) {
    const Role role = MeaningOf(key).role;
    EXPECT_TRUE(role != Role::kEpoch && role != Role::kStep && role != Role::kStepInEpoch)
        << key << " is " << RoleName(role);
  }
}

TEST(Vocabulary, Figures) {
  const Named cases[] = {{"loss", Role::kLoss},
                         {"Tot Loss", Role::kLoss},
                         {"objf", Role::kLoss},
                         {"loss_cls", Role::kLossPart},
                         {"step_time_ms", Role::kStepTime},
                         {"eval_time", Role::kOther},
                         {"training_time", Role::kElapsed},
                         {"time (us)", Role::kStepTime},
                         {"data_time_sec", Role::kDataTime},
                         {"epoch_time_s", Role::kEpochTime},
                         {"iter_s", Role::kThroughput},
                         {"显存", Role::kMemory},
                         {"entropy_loss", Role::kLossPart},
                         {"accuracy", Role::kMetric},
                         {"EpRewMean", Role::kMetric},
                         {"GAN_loss/discrim/accuracy_fake", Role::kMetric},
                         {"grad_norm", Role::kGradNorm},
                         {"loss_scale", Role::kLossScale},
                         {"avg_batch_cost", Role::kStepTime},
                         {"avg_reader_cost", Role::kDataTime},
                         {"data_time", Role::kDataTime},
                         {"eta", Role::kEta},
                         {"ips", Role::kThroughput},
                         {"max_mem_reserved", Role::kMemory},
                         {"best_loss", Role::kOther},
                         {"lowest accuracy", Role::kOther}};
  for (const auto& [key, role] : cases)
    EXPECT_EQ(RoleName(MeaningOf(key).role), RoleName(role)) << key;
}

TEST(Vocabulary, WhoseFigureItIs) {
  const KeyMeaning val = MeaningOf("val_loss");
  EXPECT_TRUE(val.eval && !val.train && val.role == Role::kEvalMetric);
  const KeyMeaning train = MeaningOf("train/loss");
  EXPECT_TRUE(train.train && !train.eval && train.role == Role::kLoss);
  const KeyMeaning average = MeaningOf("avg_loss");
  EXPECT_TRUE(average.average && !average.eval && average.role == Role::kLoss);
  const KeyMeaning chinese = MeaningOf("验证损失");
  EXPECT_TRUE(chinese.eval && chinese.role == Role::kEvalMetric);
  const KeyMeaning plain = MeaningOf("loss");
  EXPECT_FALSE(plain.eval || plain.train || plain.average);
}

TEST(Vocabulary, WordsOfALine) {
  const std::pair<std::string_view, LineWord> cases[] = {{"train", LineWord::kTrain},
                                                         {"training", LineWord::kTrain},
                                                         {"valid", LineWord::kEval},
                                                         {"evaluating", LineWord::kEval},
                                                         {"predicting", LineWord::kInference},
                                                         {"summary", LineWord::kSummary},
                                                         {"epoch", LineWord::kEpoch},
                                                         {"station", LineWord::kNone},
                                                         {"loss", LineWord::kNone},
                                                         {"", LineWord::kNone}};
  for (const auto& [word, kind] : cases) EXPECT_EQ(LineWordOf(word), kind) << word;
}

}  // namespace
}  // namespace epochmeter::ingest::log
