// SPDX-License-Identifier: Apache-2.0
#include "diagnose/epochs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "diagnose/steps.h"
#include "model/run_builder.h"

namespace epochmeter::diagnose {
namespace {

using model::Event;
using model::EventKind;

int64_t Ns(double seconds) { return std::llround(seconds * 1e9); }

Event At(double t_s, EventKind kind, std::optional<int64_t> epoch = {},
         std::vector<model::EventField> fields = {}) {
  Event event;
  event.t_ns = Ns(t_s);
  event.kind = kind;
  event.rank = 0;
  event.epoch = epoch;
  event.fields = std::move(fields);
  return event;
}

Event Step(double t_s, int64_t step, std::optional<int64_t> epoch, double duration_s,
           double loss = std::nan("")) {
  Event event = At(t_s, EventKind::kStep, epoch, {{"duration_s", duration_s}});
  event.step = step;
  if (!std::isnan(loss)) event.fields.push_back({"scalar.loss", loss});
  return event;
}

Event Phase(double t_s, EventKind kind, const std::string& name, std::optional<int64_t> epoch,
            std::vector<model::EventField> fields = {}) {
  Event event = At(t_s, kind, epoch, std::move(fields));
  event.name = name;
  return event;
}

std::vector<model::EpochRow> Rows(const std::vector<Event>& events,
                                  model::AfterTraining* after = nullptr) {
  model::RunBuilder builder;
  for (const Event& event : events) builder.Write(event);
  const model::Run run = builder.Finish();
  const std::vector<RankEvents> ranks = SplitByRank(run);
  if (ranks.size() != 1) return {};
  std::vector<model::EpochRow> rows = FindEpochs(ranks[0]);
  AddSteps(ranks[0], &rows);
  model::AfterTraining late;
  AddScalars(ranks[0], &rows, &late);
  AddPhases(ranks[0], &rows, &late);
  if (after != nullptr) *after = late;
  return rows;
}

TEST(Epochs, ComeFromBeginAndEnd) {
  const auto rows = Rows({At(1, EventKind::kEpochBegin, 0), Step(2, 1, 0, 0.5, 3.0),
                          Step(3, 2, 0, 1.0, 2.0), At(4, EventKind::kEpochEnd, 0),
                          At(4.5, EventKind::kEpochBegin, 1), At(6, EventKind::kEpochEnd, 1)});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_TRUE(rows[0].complete);
  EXPECT_EQ(rows[0].duration_s, 3.0);
  EXPECT_EQ(rows[0].steps, 2U);
  EXPECT_EQ(rows[0].step_s.p50, 0.75);
  EXPECT_EQ(rows[0].scalars, (model::ScalarTable{{"loss", 2.0}}));
  EXPECT_EQ(rows[1].epoch, 1);
  EXPECT_EQ(rows[1].steps, 0U);
  EXPECT_FALSE(rows[1].step_s.p50);
}

TEST(Epochs, WithoutAnEndStopAtTheLastThingSeen) {
  const auto rows = Rows({At(1, EventKind::kEpochBegin, 0), Step(2, 1, 0, 0.5),
                          At(9, EventKind::kEpochBegin, 0), Step(9.5, 1, 0, 0.5)});
  ASSERT_EQ(rows.size(), 2U);  // the repeated epoch is a row of its own
  EXPECT_FALSE(rows[0].complete);
  EXPECT_EQ(rows[0].end_ns, Ns(2));
  EXPECT_FALSE(rows[1].complete);
  EXPECT_EQ(rows[1].end_ns, Ns(9.5));
  EXPECT_EQ(rows[1].steps, 1U);
}

TEST(Epochs, WhoseBeginWasLostReachBackByTheirDuration) {
  const auto rows =
      Rows({At(10, EventKind::kEpochEnd, 3, {{"duration_s", 4.0}, {"steps", int64_t{7}}})});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].begin_ns, Ns(6));
  EXPECT_TRUE(rows[0].complete);
  EXPECT_EQ(rows[0].steps, 7U);  // the sender counted them though none arrived
}

TEST(Epochs, OfAPlainLoopComeFromItsStepNumbers) {
  const auto rows =
      Rows({Step(1, 1, 0, 0.5), Step(2, 2, 0, 1), Step(3, 3, 1, 1), Step(4, 4, 1, 1)});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].begin_ns, Ns(0.5));
  EXPECT_EQ(rows[0].end_ns, Ns(2));
  EXPECT_TRUE(rows[0].complete);
  EXPECT_EQ(rows[1].begin_ns, Ns(2));
  EXPECT_FALSE(rows[1].complete);
  EXPECT_EQ(rows[1].steps, 2U);
}

Event Restart(double t_s) { return At(t_s, EventKind::kTrainBegin); }

TEST(Epochs, ThatARestartCutShortAreNotComplete) {
  const auto rows = Rows({Restart(0), Step(1, 1, 0, 1), Step(2, 2, 0, 1), Restart(9),
                          Step(10, 1, 0, 1), Step(11, 2, 0, 1), Step(12, 3, 1, 1)});
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_FALSE(rows[0].complete);
  EXPECT_TRUE(rows[1].complete);
}

TEST(Epochs, WhoseLastStepSaysSoAreComplete) {
  Event last = Step(2, 2, 0, 1);
  last.fields.push_back({"ends_epoch", int64_t{1}});
  EXPECT_TRUE(Rows({Step(1, 1, 0, 1), last})[0].complete);
  EXPECT_FALSE(Rows({Step(1, 1, 0, 1), last, Step(3, 3, 0, 1)})[0].complete);
}

TEST(Epochs, AtOneInstantHaveNoDuration) {
  const auto rows = Rows({Step(1, 1, 0, std::nan("")), Step(1, 2, 0, std::nan(""))});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_FALSE(rows[0].duration_s.has_value());
}

TEST(Steps, WhoseNumberIsNotToldAreNotCounted) {
  Event line = At(9, EventKind::kStep, 0, {{"steps", int64_t{0}}, {"epoch_s", 4.0}});
  const auto rows = Rows({line});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_FALSE(rows[0].steps_known);
  EXPECT_FALSE(rows[0].step_s.p50);
  EXPECT_EQ(rows[0].duration_s, 4.0);
}

TEST(Steps, OfALogBelongToTheEpochThatTheirLineCountsIn) {
  const auto line = [](double t_s, int64_t epoch, int64_t inner, int64_t steps) {
    return At(t_s, EventKind::kStep, epoch, {{"step_in_epoch", inner}, {"steps", steps}});
  };
  const std::vector<Event> lines = {line(1, 0, 0, 1), line(2, 0, 50, 50), line(3, 1, 0, 50),
                                    line(4, 1, 50, 50)};
  EXPECT_EQ(Rows(lines)[0].steps, 51U);
  std::vector<Event> log = {At(0, EventKind::kTrainBegin, {}, {{"source", std::string("log")}})};
  log.insert(log.end(), lines.begin(), lines.end());
  EXPECT_EQ(Rows(log)[0].steps, 100U);
  EXPECT_EQ(Rows(log)[1].steps, 51U);
}

TEST(Steps, ThatRanInOneGoAreCountedEach) {
  Event several = Step(4, 5, 0, 2);
  several.fields.push_back({"steps", int64_t{4}});
  const auto rows = Rows({At(1, EventKind::kEpochBegin, 0), Step(2, 1, 0, 0.5), several,
                          At(4, EventKind::kEpochEnd, 0)});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].steps, 5U);
  EXPECT_DOUBLE_EQ(rows[0].step_s.max.value_or(0), 0.5);
  EXPECT_DOUBLE_EQ(rows[0].step_s.min.value_or(0), 0.5);
}

TEST(Epochs, OfStepsWithoutNumbersAreOneRow) {
  const auto rows = Rows({Step(1, 1, {}, 1), Step(2, 2, {}, 1), At(3, EventKind::kTrainEnd)});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].epoch, model::kNoEpoch);
  EXPECT_EQ(rows[0].steps, 2U);
  EXPECT_TRUE(rows[0].complete);
}

TEST(Epochs, ThatWereLeftEarlyAreNotComplete) {
  const auto rows = Rows({At(1, EventKind::kEpochBegin, 0), Step(2, 1, 0, 0.5),
                          At(3, EventKind::kEpochEnd, 0, {{"partial", int64_t{1}}}),
                          At(3.1, EventKind::kEpochEnd, 0, {{"partial", int64_t{1}}})});
  ASSERT_EQ(rows.size(), 1U);  // an end that is told twice opens nothing
  EXPECT_FALSE(rows[0].complete);
  EXPECT_EQ(rows[0].end_ns, Ns(3));
}

TEST(Epochs, MayHaveNegativeNumbers) {
  const auto rows = Rows({Step(1, -2, -1, 0.5), Step(2, -1, -1, 0.5), Step(3, 0, 0, 0.5)});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].epoch, -1);
  EXPECT_EQ(rows[0].steps, 2U);
  EXPECT_EQ(rows[1].epoch, 0);
}

TEST(Phases, AttachToTheEpochTheyCarryOrFollow) {
  const auto rows = Rows(
      {At(1, EventKind::kEpochBegin, 0), At(2, EventKind::kEpochEnd, 0),
       Phase(2.1, EventKind::kPhaseBegin, "eval", {}),
       Phase(3.1, EventKind::kPhaseEnd, "eval", {}, {{"scalar.loss", 0.5}}),
       At(4, EventKind::kEpochBegin, 1), At(5, EventKind::kEpochEnd, 1),
       Phase(5.5, EventKind::kPhaseEnd, "eval", 0, {{"duration_s", 0.25}, {"scalar.loss", 0.4}}),
       Phase(5.6, EventKind::kPhaseEnd, "checkpoint", 1)});
  ASSERT_EQ(rows.size(), 2U);
  ASSERT_EQ(rows[0].phases.size(), 1U);
  EXPECT_EQ(rows[0].phases[0].count, 2U);
  EXPECT_DOUBLE_EQ(rows[0].phases[0].total_s, 1.25);
  EXPECT_EQ(rows[0].phases[0].scalars, (model::ScalarTable{{"loss", 0.4}}));
  EXPECT_TRUE(rows[0].scalars.empty());  // validation is apart from training
  EXPECT_TRUE(rows[1].phases.empty());   // of unknown length: not counted as 0 s
}

TEST(Scalars, KeepALossThatIsNotANumber) {
  const auto rows = Rows({At(1, EventKind::kEpochBegin, 0), Step(2, 1, 0, 0.5, 3.0),
                          At(3, EventKind::kEpochEnd, 0, {{"scalar.loss", std::nan("")}})});
  ASSERT_EQ(rows.size(), 1U);
  ASSERT_EQ(rows[0].scalars.size(), 1U);
  EXPECT_TRUE(std::isnan(rows[0].scalars[0].second));
}

TEST(Steps, WithBatchSizesBeyondAnyCountLeaveTheSamplesUnknown) {
  const auto samples = [](double batch_size) {
    Event step = Step(2, 0, 0, 0.5);
    step.fields.push_back({"batch_size", batch_size});
    const auto rows =
        Rows({At(1, EventKind::kEpochBegin, 0), step, At(3, EventKind::kEpochEnd, 0)});
    return rows.size() == 1 ? rows[0].samples : std::optional<uint64_t>(~uint64_t{0});
  };
  EXPECT_EQ(samples(64), 64U);
  EXPECT_EQ(samples(9e18), 9'000'000'000'000'000'000U);
  for (const double wild : {1e19, 1.1e248, HUGE_VAL, -1.0, std::nan("")}) {
    EXPECT_FALSE(samples(wild).has_value()) << wild;
  }
}

TEST(Phases, AfterTheTrainingAreNotOfItsLastEpoch) {
  model::AfterTraining after;
  const auto rows =
      Rows({At(0, EventKind::kTrainBegin, {}), At(1, EventKind::kEpochBegin, 0),
            Phase(2, EventKind::kPhaseBegin, "eval", 0),
            Phase(3, EventKind::kPhaseEnd, "eval", 0, {{"duration_s", 1.0}, {"scalar.loss", 0.95}}),
            At(4, EventKind::kEpochEnd, 0), At(5, EventKind::kTrainEnd, {}),
            Phase(6, EventKind::kPhaseBegin, "eval", {}),
            Phase(8, EventKind::kPhaseEnd, "eval", {}, {{"scalar.loss", 0.87}}),
            At(9, EventKind::kScalar, {}, {{"scalar.test_accuracy", 0.5}})},
           &after);
  ASSERT_EQ(rows.size(), 1U);
  ASSERT_EQ(rows[0].phases.size(), 1U);
  EXPECT_EQ(rows[0].phases[0].count, 1U);
  EXPECT_EQ(rows[0].phases[0].scalars, (model::ScalarTable{{"loss", 0.95}}));
  EXPECT_TRUE(rows[0].scalars.empty());
  ASSERT_EQ(after.phases.size(), 1U);
  EXPECT_EQ(after.phases[0].total_s, 2);
  EXPECT_EQ(after.phases[0].scalars, (model::ScalarTable{{"loss", 0.87}}));
  EXPECT_EQ(after.scalars, (model::ScalarTable{{"test_accuracy", 0.5}}));
}

TEST(Phases, OfALateEndStayWithTheEpochThatTheyName) {
  model::AfterTraining after;
  const auto rows =
      Rows({At(1, EventKind::kEpochBegin, 0), Phase(2, EventKind::kPhaseBegin, "eval", {}),
            At(4, EventKind::kTrainEnd, {}), Phase(5, EventKind::kPhaseEnd, "eval", {}),
            Phase(6, EventKind::kPhaseEnd, "save", 0, {{"duration_s", 1.0}})},
           &after);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].phases.size(), 2U);
  EXPECT_TRUE(after.phases.empty());
}

}  // namespace
}  // namespace epochmeter::diagnose
