// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/step_timer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <initializer_list>
#include <optional>
#include <vector>

#include "ingest/log/data_place.h"
#include "ingest/log/record_test_util.h"

namespace epochmeter::ingest::log {
namespace {

TEST(StepTimer, APrintedStepTimeIsTaken) {
  StepTimer timer;
  FedRecord record(1);
  record.With(Role::kStep, "step", 10).With(Role::kStepTime, "dt", 250, 1e-3, "ms");
  const StepTiming timing = timer.Next(record.record());
  EXPECT_EQ(timing.from, StepTimeFrom::kPrinted);
  EXPECT_DOUBLE_EQ(timing.step_s.value(), 0.25);
  EXPECT_TRUE(timing.first);
  EXPECT_FALSE(timing.steps.has_value());
}

TEST(StepTimer, ALineForAWholeEpochTellsAllItsSteps) {
  StepTimer timer;
  FedRecord whole(1), part(1);
  whole.With(Role::kStepInEpoch, "", 32).With(Role::kStepsPerEpoch, "", 32);
  part.With(Role::kStepInEpoch, "", 10).With(Role::kStepsPerEpoch, "", 32);
  EXPECT_EQ(timer.Next(whole.record()).steps, 32);
  EXPECT_FALSE(StepTimer().Next(part.record()).steps.has_value());
}

TEST(StepTimer, AnElapsedTimeIsNoStepTimeButItsDifferencesAre) {
  StepTimer timer;
  FedRecord first(1), second(2), next_epoch(3);
  first.With(Role::kEpoch, "e", 1)
      .With(Role::kStepInEpoch, "b", 200)
      .With(Role::kElapsed, "t", 142);
  second.With(Role::kEpoch, "e", 1)
      .With(Role::kStepInEpoch, "b", 400)
      .With(Role::kElapsed, "t", 262);
  next_epoch.With(Role::kEpoch, "e", 2)
      .With(Role::kStepInEpoch, "b", 200)
      .With(Role::kElapsed, "t", 130);
  EXPECT_FALSE(timer.Next(first.record()).step_s.has_value());
  const StepTiming timing = timer.Next(second.record());
  EXPECT_EQ(timing.from, StepTimeFrom::kElapsed);
  EXPECT_DOUBLE_EQ(timing.step_s.value(), 0.6);
  const StepTiming after = timer.Next(next_epoch.record());
  EXPECT_FALSE(after.step_s.has_value());
  EXPECT_TRUE(after.new_epoch);
  EXPECT_FALSE(after.goes_back);
}

// 40 records whose "time" is `printed_s` of the record's number, `wall_s` apart.
StepTiming LastOf(const std::function<double(int)>& printed_s, double wall_s) {
  StepTimer timer;
  StepTiming timing;
  for (int i = 1; i <= 40; ++i) {
    FedRecord record(static_cast<uint64_t>(i));
    record.With(Role::kStep, "step", i).With(Role::kStepTime, "time", printed_s(i));
    if (wall_s > 0) record.At(1000 + i * wall_s);
    timing = timer.Next(record.record());
  }
  return timing;
}

TEST(StepTimer, AStepTimeThatOnlyRisesIsTheTimeSinceTheStart) {
  for (const double wall_s : {0.0, 2.5}) {
    const StepTiming timing = LastOf([](int i) { return 20 + 2.5 * i; }, wall_s);
    EXPECT_TRUE(timing.sums);
    EXPECT_EQ(timing.from, StepTimeFrom::kElapsed);
    EXPECT_DOUBLE_EQ(timing.step_s.value(), 2.5);
  }
}

TEST(StepTimer, StepTimesThatSwingOrFitTheClockAreBelieved) {
  EXPECT_FALSE(LastOf([](int i) { return 1 + 0.1 * i - (i % 9 == 0 ? 1 : 0); }, 0).sums);
  EXPECT_FALSE(LastOf([](int i) { return 1 + 0.1 * i; }, 5).sums);
  EXPECT_FALSE(LastOf([](int) { return 0.5; }, 0).sums);
}

TEST(StepTimer, StepsGoOnOverAnEpochWhoseLengthIsPrinted) {
  StepTimer timer;
  FedRecord first(1), second(2);
  first.With(Role::kEpoch, "e", 3)
      .With(Role::kStepInEpoch, "i", 90)
      .With(Role::kStepsPerEpoch, "n", 100);
  second.With(Role::kEpoch, "e", 4)
      .With(Role::kStepInEpoch, "i", 0)
      .With(Role::kStepsPerEpoch, "n", 100);
  timer.Next(first.record());
  EXPECT_DOUBLE_EQ(timer.Next(second.record()).steps.value(), 10);
}

// The timings of lines "epoch E, step S of `whole`", each `interval`th step from `from` on.
std::vector<StepTiming> Series(double from, double interval, double whole, int epochs) {
  StepTimer timer;
  std::vector<StepTiming> timings;
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    for (double step = from; step <= (whole > 0 ? whole : 100); step += interval) {
      FedRecord record(timings.size() + 1);
      record.With(Role::kEpoch, "epoch", epoch).With(Role::kStepInEpoch, "step", step);
      if (whole > 0) record.With(Role::kStepsPerEpoch, "", whole);
      timings.push_back(timer.Next(record.record()));
    }
  }
  return timings;
}

TEST(StepTimer, TheFirstRecordOfAnEpochStandsForAsManyStepsAsTheOthers) {
  EXPECT_EQ(Series(10, 10, 100, 2)[10].steps, 10);
  EXPECT_EQ(Series(10, 10, 0, 2)[10].steps, 10);  // how many an epoch has is not printed
  EXPECT_EQ(Series(9, 10, 0, 2)[10].steps, 10);   // they count from 0
  EXPECT_FALSE(Series(0, 10, 0, 2)[11].steps);    // how many were left is not known
  EXPECT_FALSE(Series(5, 10, 0, 2)[10].steps);
  EXPECT_FALSE(Series(10, 10, 100, 1)[0].steps);  // the second is not read yet
}

TEST(StepTimer, TheLastStepOfAnEpochEndsIt) {
  EXPECT_FALSE(Series(10, 10, 100, 1)[8].ends_epoch);
  EXPECT_TRUE(Series(10, 10, 100, 1)[9].ends_epoch);
  EXPECT_FALSE(Series(1, 1, 100, 1)[98].ends_epoch);
  EXPECT_FALSE(Series(0, 1, 100, 1)[99].ends_epoch);
  EXPECT_TRUE(Series(9, 10, 100, 2)[19].ends_epoch);  // 99/100, as that before
}

// The time of the last of lines "Epoch E, Time: 12.5 s".
StepTiming EpochLines(std::initializer_list<int> epochs, std::string_view key) {
  StepTimer timer;
  StepTiming timing;
  uint64_t line = 0;
  for (const int epoch : epochs) {
    FedRecord record(++line);
    record.With(Role::kEpoch, "Epoch", epoch).With(Role::kStepTime, key, 12.5, 1, "s");
    timing = timer.Next(record.record());
  }
  return timing;
}

TEST(StepTimer, TheTimeOfTheOneLineOfAnEpochIsTheEpochs) {
  EXPECT_EQ(EpochLines({1, 2, 3}, "Time").epoch_s, 12.5);
  EXPECT_FALSE(EpochLines({1, 2, 3}, "Time").step_s.has_value());
  EXPECT_TRUE(EpochLines({1, 2, 3}, "Time").ends_epoch);
  EXPECT_EQ(EpochLines({1, 2, 3}, "step_time").step_s, 12.5);
  EXPECT_EQ(EpochLines({1, 1, 1}, "Time").step_s, 12.5);
  EXPECT_EQ(EpochLines({1, 1, 2}, "Time").step_s, 12.5);
  EXPECT_FALSE(EpochLines({1, 1, 2}, "Time").ends_epoch);
}

TEST(StepTimer, AWholeEpochAmongFractionsIsTheEndOfTheOneBefore) {
  StepTimer timer;
  std::vector<std::optional<double>> epochs;
  for (const double printed : {0.5, 1.0, 1.5, 2.0}) {
    FedRecord record(epochs.size() + 1);
    record.With(Role::kEpoch, "epoch", printed);
    epochs.push_back(timer.Next(record.record()).epoch);
  }
  EXPECT_EQ(epochs, (std::vector<std::optional<double>>{0, 0, 1, 1}));
  FedRecord whole(1);
  whole.With(Role::kEpoch, "epoch", 3);
  EXPECT_EQ(StepTimer().Next(whole.record()).epoch, 3);
}

TEST(StepTimer, ARestartBeginsAnew) {
  StepTimer timer;
  FedRecord before(5), again(9), labelled(12);
  before.With(Role::kStep, "step", 500).At(100);
  again.With(Role::kStep, "step", 400).At(130);
  labelled.With(Role::kStep, "step", 410).At(140).Start(1);
  timer.Next(before.record());
  const StepTiming timing = timer.Next(again.record());
  EXPECT_TRUE(timing.goes_back);
  EXPECT_TRUE(timing.first);
  EXPECT_FALSE(timing.steps.has_value());
  EXPECT_FALSE(timing.interval_s.has_value());
  EXPECT_TRUE(timer.Next(labelled.record()).first);
}

TEST(StepTimer, TimesOfLinesAreTheLastResort) {
  StepTimer timer;
  FedRecord first(1), second(2);
  first.With(Role::kStep, "step", 10).At(1000);
  second.With(Role::kStep, "step", 20).At(1005);
  timer.Next(first.record());
  const StepTiming timing = timer.Next(second.record());
  EXPECT_EQ(timing.from, StepTimeFrom::kStamps);
  EXPECT_DOUBLE_EQ(timing.step_s.value(), 0.5);
}

TEST(StepTimer, ARateOfSamplesNeedsTheBatchSize) {
  StepTimer timer;
  FedRecord alone(1), with_batch(2), steps(3);
  alone.With(Role::kThroughput, "ips", 64, 1, "images/s");
  with_batch.With(Role::kThroughput, "ips", 64, 1, "images/s").With(Role::kBatchSize, "bs", 32);
  steps.With(Role::kThroughput, "speed", 4, 1, "it/s");
  EXPECT_FALSE(timer.Next(alone.record()).step_s.has_value());
  EXPECT_DOUBLE_EQ(timer.Next(with_batch.record()).step_s.value(), 0.5);
  EXPECT_DOUBLE_EQ(timer.Next(steps.record()).step_s.value(), 0.25);
}

TEST(StepTimer, RoundedStepsAreNotCounted) {
  StepTimer timer;
  FedRecord first(1), second(2);
  first.With(Role::kStep, "step", 1000, 1, "", "1K");
  second.With(Role::kStep, "step", 2000, 1, "", "2K");
  timer.Next(first.record());
  EXPECT_FALSE(timer.Next(second.record()).steps.has_value());
}

// Records each 100 steps of `step_s` with `data_s`, whose lines lie `wall_s` apart.
DataPlaceJudge::Verdict Judged(double step_s, double data_s, double wall_s) {
  StepTimer timer;
  DataPlaceJudge judge;
  for (int i = 0; i < 12; ++i) {
    FedRecord record(static_cast<uint64_t>(i) + 1);
    record.With(Role::kStep, "step", i * 100)
        .With(Role::kStepTime, "time", step_s)
        .With(Role::kDataTime, "data", data_s)
        .At(1000 + std::floor(i * wall_s));
    const IndexedRecord indexed(record.record());
    judge.Add(indexed, timer.Next(indexed));
  }
  return judge.Judge();
}

TEST(DataPlace, TheTimesOfLinesDecide) {
  EXPECT_EQ(Judged(0.5, 0.2, 50).place, DataPlace::kInside);
  EXPECT_EQ(Judged(0.5, 0.2, 70).place, DataPlace::kBeside);
}

TEST(DataPlace, WhatFitsNeitherStaysUnknown) {
  EXPECT_EQ(Judged(0.5, 0.2, 60).place, DataPlace::kUnknown);
  EXPECT_EQ(Judged(0.5, 0.2, 200).place, DataPlace::kUnknown);
  const auto short_wait = Judged(0.5, 0.0001, 50);
  EXPECT_EQ(short_wait.place, DataPlace::kUnknown);
  EXPECT_NE(short_wait.why.en.find("too short"), std::string::npos);
}

TEST(DataPlace, DataThatTakesLongerThanTheStepIsBeside) {
  EXPECT_EQ(Judged(0.4, 1.6, 40).place, DataPlace::kBeside);
}

}  // namespace
}  // namespace epochmeter::ingest::log
