// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "diagnose/rules/all.h"
#include "diagnose/test_run.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kLossSpike;

// A loss that falls from 7 towards 1, with noise.
class Falling {
 public:
  explicit Falling(double noise) : noise_(0, noise) {}
  double At(int step) { return 1 + 6 * std::exp(-step / 60.0) + noise_(random_); }

 private:
  std::mt19937 random_{7};
  std::normal_distribution<double> noise_;
};

std::string Judged(const std::function<double(int)>& loss) {
  TestRun run(60);
  run.Train({.loss = loss});
  return SeverityOf(run.Judge(kRule));
}

TEST(LossSpike, AJumpThatRecoversIsInfo) {
  Falling falling(0.05);
  TestRun run(60);
  run.Train({.loss = [&](int step) {
    return falling.At(step) + (step >= 250 ? 4 * std::exp(-(step - 250) / 10.0) : 0);
  }});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "info");
  EXPECT_EQ(findings[0].rank, 0);
  EXPECT_EQ(findings[0].evidence.at(0).steps, std::vector<int64_t>{251});
  EXPECT_NE(findings[0].summary.en.find("came down again"), std::string::npos);
}

TEST(LossSpike, AJumpThatStaysIsAWarning) {
  Falling falling(0.05);
  EXPECT_EQ(Judged([&](int step) { return falling.At(step) + (step >= 250 ? 4 : 0); }), "warning");
}

TEST(LossSpike, ALossThatExplodesAtTheVeryEndIsAWarning) {
  Falling falling(0.05);
  EXPECT_EQ(Judged([&](int step) {
              return falling.At(step) * (step >= 390 ? std::pow(3, step - 389) : 1);
            }),
            "warning");
}

TEST(LossSpike, NoiseSingleBadBatchesAndTheBeginningAreNone) {
  Falling noisy(0.4);
  EXPECT_EQ(Judged([&](int step) { return noisy.At(step); }), "none");
  Falling single(0.05);
  EXPECT_EQ(Judged([&](int step) { return single.At(step) + (step % 50 == 20 ? 8 : 0); }), "none");
  Falling start(0.05);
  EXPECT_EQ(Judged([&](int step) { return start.At(step) + (step < 30 ? step : 0); }), "none");
  std::mt19937 random(3);
  std::student_t_distribution<double> heavy(3);
  EXPECT_EQ(Judged([&](int) { return 2 + 0.3 * heavy(random); }), "none");
}

TEST(LossSpike, NoiseAroundALossOfNearlyZeroIsNone) {
  std::mt19937 random(5);
  std::lognormal_distribution<double> noise(0, 1);
  EXPECT_EQ(Judged([&](int step) {
              return step < 60 ? 7.0 - step * 0.1
                               : 0.001 * noise(random) * (step / 30 % 2 == 0 ? 1 : 20);
            }),
            "none");
}

TEST(LossSpike, AWarmRestartIsInfo) {
  Falling falling(0.05);
  TestRun run(60);
  run.Train({.loss = [&](int step) { return falling.At(step) + (step >= 250 ? 4 : 0); }});
  for (int step = 0; step < 400; ++step) {
    run.Event(1.5 + 0.1 * step, model::EventKind::kScalar, 0, {},
              {{"scalar.lr", step < 249 ? 1e-4 : 1e-2}});
  }
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "info");
  EXPECT_NE(findings[0].summary.en.find("learning rate rose"), std::string::npos);
}

TEST(LossSpike, RanksAreOneFinding) {
  TestRun run(60);
  for (int rank = 0; rank < 3; ++rank) {
    Falling falling(0.05);
    run.Train(
        {.rank = rank, .loss = [&](int step) { return falling.At(step) + (step >= 250 ? 4 : 0); }});
  }
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "warning");
  EXPECT_EQ(findings[0].rank, std::nullopt);
  EXPECT_NE(findings[0].summary.en.find("3 of 3 ranks"), std::string::npos);
}

TEST(LossSpike, CannotJudgeWithoutEnoughValues) {
  TestRun none(60);
  none.Train({});
  EXPECT_NE(none.NotApplicableReason(kRule), "");
  TestRun few(60);
  few.Train({.epochs = 1, .steps = 30, .loss = [](int step) { return step; }});
  EXPECT_NE(few.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
