// SPDX-License-Identifier: Apache-2.0
#include "diagnose/bill.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "diagnose/test_run.h"
#include "model/gpu_activity_metrics.h"
#include "model/gpu_metrics.h"

namespace epochmeter::diagnose {
namespace {

using model::Bill;
using model::BillLine;
using model::EventKind;
using model::TimeUse;

double SecondsOf(const BillLine& line, TimeUse use) {
  return static_cast<double>(line.Of(use).ns) / 1e9;
}

// Every way to add the bill up gives wall time x devices, to the ns.
void ExpectAddsUp(const Bill& bill) {
  EXPECT_EQ(bill.total.total_ns, bill.wall_ns * bill.devices);
  const auto sum = [](const std::vector<BillLine>& lines) {
    int64_t ns = 0;
    for (const BillLine& line : lines) ns += line.total_ns;
    return ns;
  };
  EXPECT_EQ(sum(bill.epochs), bill.total.total_ns);
  EXPECT_EQ(sum(bill.phases), bill.total.total_ns);
  EXPECT_EQ(sum(bill.ranks), bill.total.total_ns);
  const bool gpus = bill.basis == "gpu";
  EXPECT_EQ(sum(bill.gpus), gpus ? bill.total.total_ns : 0);
  for (const auto* lines : {&bill.epochs, &bill.phases, &bill.ranks, &bill.gpus}) {
    if (lines == &bill.gpus && !gpus) continue;
    for (size_t use = 0; use < model::kTimeUseCount; ++use) {
      int64_t ns = 0;
      for (const BillLine& line : *lines) {
        EXPECT_GE(line.uses[use].ns, 0);
        ns += line.uses[use].ns;
      }
      EXPECT_EQ(ns, bill.total.uses[use].ns) << "use " << use;
    }
  }
}

Bill BillOf(TestRun& run, const model::Rates& rates = {}) {
  Bill bill = MakeBill(run.Finish(), rates);
  ExpectAddsUp(bill);
  return bill;
}

void Step(TestRun& run, double t_s, int64_t epoch, int64_t step, double duration_s,
          int32_t rank = 0) {
  model::Event event;
  event.t_ns = std::llround(t_s * 1e9);
  event.kind = EventKind::kStep;
  event.rank = rank;
  event.epoch = epoch;
  event.step = step;
  event.fields = {{"duration_s", duration_s}};
  run.Write(event);
}

TEST(Bill, SplitsTheTimeOfAPlainTraining) {
  TestRun run(60);
  run.Constant(run.Gpu(0), model::gpu::kSmActive, 1, 0.5);
  run.Train({.data_wait_s = [](int) { return 0.02; }, .eval_s = 1});
  const Bill bill = BillOf(run);
  EXPECT_EQ(bill.devices, 1);
  EXPECT_NEAR(SecondsOf(bill.total, TimeUse::kStartUp), 1.5, 1e-6);
  EXPECT_NEAR(SecondsOf(bill.total, TimeUse::kProductive), 32, 1e-6);
  EXPECT_NEAR(SecondsOf(bill.total, TimeUse::kDataWait), 8, 1e-6);
  EXPECT_NEAR(SecondsOf(bill.total, TimeUse::kEvaluation), 4, 1e-6);
  EXPECT_NEAR(SecondsOf(bill.total, TimeUse::kTearDown), 60 - 45.5, 1e-6);
  EXPECT_EQ(bill.activity_source, "sm_active_ratio");
  EXPECT_NEAR(static_cast<double>(bill.total.effective_ns.value()) / 1e9, 16, 1e-3);
  ASSERT_EQ(bill.epochs.size(), 5U);
  EXPECT_EQ(bill.epochs[0].epoch, 0);
  EXPECT_NEAR(static_cast<double>(bill.epochs[0].total_ns) / 1e9, 11, 1e-6);  // with its eval
  EXPECT_FALSE(bill.epochs[4].epoch);
}

TEST(Bill, StepsThatARestartThrewAwayAreRepeatedWork) {
  TestRun run(60);
  run.Gpu(0);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 0.9);
  run.Event(1, EventKind::kTrainBegin, 0, {}, {{"gpus", std::string("0")}});
  for (int i = 1; i <= 10; ++i) Step(run, 1 + i, 0, i, 1);
  // It died at step 10, came back after 4 s and went on from the checkpoint of step 6.
  run.Event(15, EventKind::kTrainBegin, 0, {}, {{"gpus", std::string("0")}});
  for (int i = 7; i <= 12; ++i) Step(run, 16 + (i - 6), 0, i, 1);
  run.Event(22, EventKind::kTrainEnd, 0);
  const Bill bill = BillOf(run);
  EXPECT_NEAR(SecondsOf(bill.total, TimeUse::kRepeated), 4, 1e-9);
  EXPECT_NEAR(SecondsOf(bill.total, TimeUse::kProductive), 12, 1e-9);
  EXPECT_NEAR(SecondsOf(bill.total, TimeUse::kStartUp), 2, 1e-9);
  EXPECT_NE(bill.notes.front().en.find("restarted 1 time"), std::string::npos);
}

TEST(Bill, SaysWhereCheckpointsStandThatOnlyARuleSaw) {
  TestRun run(60);
  run.Gpu(0);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 0.9);
  run.Train({.epochs = 1});
  const Facts& facts = run.Finish();
  model::Report report = facts.report();
  const auto notes = [&] {
    const Facts with(facts.run(), report, facts.limits());
    const std::vector<model::Message> said = MakeBill(with, {}).notes;
    return std::count_if(said.begin(), said.end(), [](const model::Message& note) {
      return note.en.find("Checkpoints of about 17.0 s") != note.en.npos;
    });
  };
  EXPECT_EQ(notes(), 0);
  model::Finding seen;
  seen.rule = "checkpoint_stall";
  seen.lost_gpu_s = 17.0;
  report.findings.push_back(seen);
  EXPECT_EQ(notes(), 1);
}

TEST(Bill, ASecondTrainingAfterTheEndOfTheFirstRepeatsNothing) {
  TestRun run(60);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 0.9);
  for (const double begin_s : {1.0, 20.0}) {
    run.Event(begin_s, EventKind::kTrainBegin, 0, {}, {{"gpus", std::string("0")}});
    for (int i = 1; i <= 10; ++i) Step(run, begin_s + i, 0, i, 1);
    run.Event(begin_s + 10, EventKind::kTrainEnd, 0, {}, {{"status", std::string("completed")}});
  }
  const Bill bill = BillOf(run);
  EXPECT_EQ(SecondsOf(bill.total, TimeUse::kRepeated), 0);
  EXPECT_NEAR(SecondsOf(bill.total, TimeUse::kProductive), 20, 1e-9);
}

TEST(Bill, ATrainingThatFailedAndBeganAgainWasRestarted) {
  TestRun run(60);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 0.9);
  for (const double begin_s : {1.0, 20.0}) {
    run.Event(begin_s, EventKind::kTrainBegin, 0, {}, {{"gpus", std::string("0")}});
    for (int i = 1; i <= 10; ++i) Step(run, begin_s + i, 0, i, 1);
    run.Event(begin_s + 10, EventKind::kTrainEnd, 0, {}, {{"status", std::string("failed")}});
  }
  EXPECT_NEAR(SecondsOf(BillOf(run).total, TimeUse::kRepeated), 10, 1e-9);
}

TEST(Bill, ATrainingThatHangsStalls) {
  TestRun run(200);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 1);
  run.Train({.ends = false});
  const Bill bill = BillOf(run);
  EXPECT_NEAR(SecondsOf(bill.total, TimeUse::kStall), 200 - 41.5, 0.5);
  EXPECT_NEAR(SecondsOf(bill.total, TimeUse::kProductive), 40, 1e-6);
}

TEST(Bill, AStepThatEndedAfterAllStalledForAsLongAsItWasTooLong) {
  TestRun run(200);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 1);
  run.Train({.duration_s = [](int step) { return step == 250 ? 50.1 : 0.1; }});
  const Bill bill = BillOf(run);
  EXPECT_NEAR(SecondsOf(bill.total, TimeUse::kStall), 50, 1e-6);
  EXPECT_NEAR(SecondsOf(bill.total, TimeUse::kProductive), 40, 1e-6);
}

TEST(Bill, TheInnermostPhaseHoldsAndStepsInsideAnEvaluationAreNone) {
  TestRun run(60);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 1);
  run.Train({.epochs = 1});  // steps from 1.5 to 11.5
  run.Event(3, EventKind::kPhaseBegin, 0, "eval");
  run.Event(4, EventKind::kPhaseBegin, 0, "checkpoint");
  run.Event(5, EventKind::kPhaseEnd, 0, "checkpoint");
  run.Event(6, EventKind::kPhaseEnd, 0, "eval");
  run.Event(7, EventKind::kPhaseBegin, 0, "comm");
  run.Event(7.5, EventKind::kPhaseEnd, 0, "comm");
  run.Event(8, EventKind::kPhaseBegin, 0, "forward");
  run.Event(9, EventKind::kPhaseEnd, 0, "forward");
  const Bill bill = BillOf(run);
  EXPECT_NEAR(SecondsOf(bill.total, TimeUse::kEvaluation), 2, 1e-6);
  EXPECT_NEAR(SecondsOf(bill.total, TimeUse::kCheckpoint), 1, 1e-6);
  EXPECT_NEAR(SecondsOf(bill.total, TimeUse::kCommunication), 0.5, 1e-6);
  EXPECT_NEAR(SecondsOf(bill.total, TimeUse::kProductive), 6.5, 1e-6);
}

TEST(Bill, APhaseOfTheTrainingsOwnIsOther) {
  TestRun run(60);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 1);
  run.Train({.epochs = 1});
  run.Event(20, EventKind::kPhaseBegin, 0, "upload");
  run.Event(25, EventKind::kPhaseEnd, 0, "upload");
  const Bill bill = BillOf(run);
  EXPECT_NEAR(SecondsOf(bill.total, TimeUse::kOther), 5, 1e-6);
  EXPECT_EQ(bill.phases.back().name, "upload");
}

TEST(Bill, TwoRanksOnOneGpuAreCountedOnce) {
  TestRun run(60);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 1);
  run.Train({.rank = 0, .epochs = 2, .eval_s = 3});
  run.Train({.rank = 1, .epochs = 2, .begin_s = 1.05});
  const Bill bill = BillOf(run);
  EXPECT_EQ(bill.devices, 1);
  ASSERT_EQ(bill.ranks.size(), 2U);
  EXPECT_GT(SecondsOf(bill.ranks[0], TimeUse::kProductive), 5);
  EXPECT_GT(SecondsOf(bill.ranks[1], TimeUse::kProductive), 5);
  // While one evaluates the other trains.
  EXPECT_LT(SecondsOf(bill.total, TimeUse::kEvaluation), 6);
}

TEST(Bill, AGpuThatNoRankNamesIsUnused) {
  TestRun run(60);
  for (const int gpu : {0, 1}) run.Constant(run.Gpu(gpu), model::gpu::kUtilization, 1, 1);
  run.Entity({.scope = model::Scope::kGpu,
              .name = "GPU-2",
              .labels = {{"gpu", "2"}, {"uuid", "GPU-2"}},
              .attributes = {{"job", "no"}}});
  run.Entity({.scope = model::Scope::kGpu,
              .name = "GPU-1",
              .labels = {{"gpu", "1"}, {"uuid", "GPU-1"}},
              .attributes = {{"job", "yes"}}});
  run.Train({});
  const Bill bill = BillOf(run);
  ASSERT_EQ(bill.devices, 2);
  EXPECT_EQ(SecondsOf(bill.gpus[1], TimeUse::kUnused), 60);
  EXPECT_FALSE(bill.ranks.back().rank);
}

TEST(Bill, RanksOfUnknownGpusUseThemOnlyWhileAllDoTheSame) {
  TestRun run(60);
  for (const int gpu : {0, 1}) run.Constant(run.Gpu(gpu), model::gpu::kUtilization, 1, 1);
  run.Train({.rank = 0, .epochs = 2, .gpus = "nobody knows"});
  run.Train({.rank = 1, .epochs = 2, .begin_s = 6, .gpus = "nobody knows"});
  const Bill bill = BillOf(run);
  EXPECT_EQ(bill.devices, 2);
  EXPECT_NEAR(SecondsOf(bill.total, TimeUse::kProductive), 2 * 15, 0.5);
  EXPECT_GT(SecondsOf(bill.total, TimeUse::kUnknown), 1);
}

TEST(Bill, WithoutAGpuItIsTheTimeOfRanks) {
  TestRun run(60);
  run.Train({.rank = 0});
  run.Train({.rank = 1});
  const Bill bill = BillOf(run, {.currency = "EUR", .gpus = {{.gpu_hour = 2}}});
  EXPECT_EQ(bill.basis, "rank");
  EXPECT_EQ(bill.devices, 2);
  EXPECT_FALSE(bill.total.cost);
  EXPECT_FALSE(bill.total.energy_j);
}

TEST(Bill, WithoutATrainingAllOfItIsUnknown) {
  TestRun run(60);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 1);
  const Bill bill = BillOf(run);
  EXPECT_EQ(SecondsOf(bill.total, TimeUse::kUnknown), 60);
  EXPECT_FALSE(bill.total.effective_ns);
}

TEST(Bill, WithoutAnythingThereIsNothingToBill) {
  TestRun run(60);
  const Bill bill = BillOf(run);
  EXPECT_EQ(bill.devices, 0);
  EXPECT_EQ(bill.total.total_ns, 0);
  EXPECT_FALSE(bill.notes.empty());
}

TEST(Bill, EpochsWithoutStepsAreProductiveWhenTheyEnded) {
  TestRun run(60);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 1);
  const auto epoch = [&](double t_s, EventKind kind) {
    model::Event event;
    event.t_ns = std::llround(t_s * 1e9);
    event.kind = kind;
    event.rank = 0;
    event.epoch = 0;
    run.Write(event);
  };
  run.Event(1, EventKind::kTrainBegin, 0, {}, {{"gpus", std::string("0")}});
  epoch(2, EventKind::kEpochBegin);
  epoch(22, EventKind::kEpochEnd);
  EXPECT_NEAR(SecondsOf(BillOf(run).total, TimeUse::kProductive), 20, 1e-9);
}

TEST(Bill, StepsWithoutDurationsReachBackToTheStepBefore) {
  TestRun run(60);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 1);
  run.Train({.epochs = 1, .data_wait_s = {}});
  const Bill told = BillOf(run);
  TestRun other(60);
  other.Constant(other.Gpu(0), model::gpu::kUtilization, 1, 1);
  other.Train({.epochs = 1, .duration_s = {}, .data_wait_s = {}});
  const Bill untold = BillOf(other);
  EXPECT_EQ(untold.total.Of(TimeUse::kProductive).ns, told.total.Of(TimeUse::kProductive).ns);
}

TEST(Bill, WhatTheRecorderDidNotSeeIsUnknown) {
  TestRun run(60);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 1);
  run.Train({.epochs = 1});  // ends at 11.5
  run.Event(40, EventKind::kSource, {}, "recorder",
            {{"state", std::string("replaced")}, {"away_s", 10.0}});
  const Bill bill = BillOf(run);
  EXPECT_NEAR(SecondsOf(bill.total, TimeUse::kUnknown), 10, 1e-6);
}

TEST(Bill, ThrottlingTakesThePartOfTheClockThatIsMissing) {
  TestRun run(60);
  run.Train({.epochs = 1, .steps = 400});  // 1.5 to 41.5
  run.Series(run.Gpu(0), model::gpu::kThrottleReasons, 0.1,
             [](double t_s) { return t_s >= 20 && t_s <= 30 ? 0x40 : 0; });
  run.Series(run.Gpu(0), model::gpu::kSmClock, 0.1,
             [](double t_s) { return t_s >= 20 && t_s <= 30 ? 1.2e9 : 1.6e9; });
  const Bill bill = BillOf(run);
  EXPECT_NEAR(SecondsOf(bill.total, TimeUse::kThrottle), 10 * 0.25, 0.1);
}

TEST(Bill, ThePowerCapIsNoThrottling) {
  TestRun run(60);
  run.Train({});
  run.Constant(run.Gpu(0), model::gpu::kThrottleReasons, 0.1, 0x4);
  run.Constant(run.Gpu(0), model::gpu::kSmClock, 0.1, 1e9);
  EXPECT_EQ(SecondsOf(BillOf(run).total, TimeUse::kThrottle), 0);
}

TEST(Bill, EnergyIsTheCountersAndItsDisagreementWithPowerIsSaid) {
  TestRun run(60);
  run.Train({});
  run.Series(run.Gpu(0), model::gpu::kEnergy, 1, [](double t_s) { return 1e6 + 300 * t_s; });
  run.Constant(run.Gpu(0), model::gpu::kPower, 1, 270);
  const Bill bill = BillOf(run, {.electricity_kwh = 0.5, .pue = 1.2, .carbon_g_per_kwh = 400});
  EXPECT_NEAR(bill.total.energy_j.value(), 18000, 1);
  EXPECT_NEAR(bill.total.integral_j.value(), 16200, 1);
  EXPECT_NEAR(bill.energy_disagreement_ratio.value(), 0.1, 1e-3);
  EXPECT_NEAR(bill.total.electricity_cost.value(), 0.005 * 1.2 * 0.5, 1e-9);
  EXPECT_NEAR(bill.total.carbon_g.value(), 0.005 * 1.2 * 400, 1e-6);
  EXPECT_NEAR(bill.total.Of(TimeUse::kProductive).energy_j, 40 * 300, 1);
}

TEST(Bill, AResetOfTheCounterIsNotCovered) {
  TestRun run(60);
  run.Train({});
  run.Series(run.Gpu(0), model::gpu::kEnergy, 1,
             [](double t_s) { return t_s < 30 ? 1e6 + 300 * t_s : 300 * (t_s - 30); });
  const Bill bill = BillOf(run);
  EXPECT_NEAR(bill.total.energy_coverage_ratio, 59.0 / 60, 1e-6);
  EXPECT_NEAR(bill.total.energy_j.value(), 59 * 300, 1);
}

TEST(Bill, ADeadCounterLeavesThePower) {
  TestRun run(60);
  run.Train({});
  run.Constant(run.Gpu(0), model::gpu::kEnergy, 1, 5);
  run.Constant(run.Gpu(0), model::gpu::kPower, 1, 100);
  const Bill bill = BillOf(run);
  EXPECT_FALSE(bill.total.counter_j);
  EXPECT_NEAR(bill.total.energy_j.value(), 6000, 1e-3);
}

TEST(Bill, PricesGoByNameAndUse) {
  TestRun run(60);
  run.Entity({.scope = model::Scope::kGpu,
              .name = "GPU-0",
              .labels = {{"gpu", "0"}, {"uuid", "GPU-0"}},
              .attributes = {{"name", "NVIDIA H100 80GB HBM3"}}});
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 1);
  run.Train({.eval_s = 1});
  const model::Rates rates = {
      .currency = "EUR",
      .gpus = {{.name = "*h200*", .gpu_hour = 100},
               {.name = "*H100*", .gpu_hour = 3.6, .evaluation_gpu_hour = 1.8}}};
  const Bill bill = BillOf(run, rates);
  EXPECT_NEAR(bill.total.cost.value(), (56 * 3.6 + 4 * 1.8) / 3600, 1e-9);
  EXPECT_EQ(bill.total.cost_coverage_ratio, 1);
}

TEST(Bill, UtilisationIsSaidToBeNoEvidenceOfWork) {
  TestRun run(60);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, 1);
  run.Train({});
  const Bill bill = BillOf(run);
  EXPECT_EQ(bill.activity_source, "utilization_ratio");
  bool said = false;
  for (const model::Message& note : bill.notes)
    said |= note.en.find("not evidence") != note.en.npos;
  EXPECT_TRUE(said);
}

TEST(Bill, ActivityThatWasHardlySampledIsNotKnown) {
  TestRun run(60);
  run.Series(run.Gpu(0), model::gpu::kSmActive, 1,
             [](double t_s) { return t_s < 10 ? std::optional<double>(0.5) : std::nullopt; });
  run.Train({});
  EXPECT_FALSE(BillOf(run).total.effective_ns);
}

TEST(Bill, WildEventsAddUpAllTheSame) {
  TestRun run(60);
  run.Constant(run.Gpu(0), model::gpu::kPower, 1, std::numeric_limits<double>::quiet_NaN());
  run.Constant(run.Gpu(0), model::gpu::kEnergy, 1, std::numeric_limits<double>::infinity());
  run.Event(1, EventKind::kTrainBegin, 0, {}, {{"gpus", std::string("0")}});
  Step(run, 2, 0, 1, 1e300);
  Step(run, 2, 0, 1, -5);
  Step(run, 3, 7, 2, 2.5);
  Step(run, 2.5, -4, 2, 2.5);
  run.Event(2.2, EventKind::kPhaseBegin, 0, "eval");
  run.Event(2.2, EventKind::kPhaseEnd, 0, "eval");
  run.Event(50, EventKind::kPhaseBegin, 0, "eval");
  run.Event(2.1, EventKind::kPhaseEnd, 0, "checkpoint", {{"duration_s", 40.0}});
  run.Event(30, EventKind::kTrainBegin, 0);
  run.Event(30, EventKind::kTrainBegin, 0);
  Step(run, 59, 0, std::numeric_limits<int64_t>::max(), 2);
  BillOf(run);
}

}  // namespace
}  // namespace epochmeter::diagnose
