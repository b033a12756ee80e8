// SPDX-License-Identifier: Apache-2.0
#include "model/output_events.h"

#include <gtest/gtest.h>

#include "model/run_builder.h"

namespace epochmeter::model {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

Event Told(int64_t t_s, EventKind kind, std::vector<EventField> fields) {
  return {.t_ns = t_s * kSecond,
          .kind = kind,
          .rank = {},
          .epoch = 1,
          .step = {},
          .name = {},
          .fields = std::move(fields)};
}

Event OfOutput(int64_t t_s, EventKind kind) {
  if (kind == EventKind::kStep) return Told(t_s, kind, {{"line", t_s}, {"scalar.loss", 0.5}});
  return Told(t_s, kind, {{"source", std::string("output")}});
}

Event OfClient(int64_t t_s, EventKind kind, std::optional<int32_t> rank = {}) {
  Event event = Told(t_s, kind, {});
  event.rank = rank;
  if (!rank) event.fields.push_back({"pid", int64_t{4711}});
  return event;
}

Run Built(const std::vector<Event>& events, const Labels& attributes = {}) {
  RunBuilder builder;
  builder.Write(RunInfo{.run_id = "r", .boot_id = {}, .anchor = {}, .attributes = attributes});
  for (const Event& event : events) builder.Write(event);
  return builder.Finish();
}

size_t StepsIn(const Run& run) {
  size_t steps = 0;
  for (const auto& [process, table] : run.steps) steps += table.size();
  return steps;
}

TEST(OutputEvents, StayWhereNoClientToldEpochsOrSteps) {
  const model::Run run = Built({OfClient(0, EventKind::kHello), OfOutput(1, EventKind::kTrainBegin),
                                OfOutput(1, EventKind::kEpochBegin), OfOutput(2, EventKind::kStep),
                                OfOutput(3, EventKind::kStep), OfOutput(3, EventKind::kException)});
  EXPECT_EQ(run.events.size(), 4U);
  EXPECT_EQ(StepsIn(run), 2U);
}

TEST(OutputEvents, GoWhereAClientToldEpochsOrSteps) {
  for (const EventKind kind : {EventKind::kStep, EventKind::kEpochBegin, EventKind::kTrainBegin}) {
    const model::Run run =
        Built({OfOutput(1, EventKind::kTrainBegin), OfOutput(2, EventKind::kStep),
               OfOutput(2, EventKind::kScalar), OfClient(3, kind), OfOutput(4, EventKind::kStep),
               OfOutput(5, EventKind::kTrainEnd)});
    EXPECT_EQ(run.events.size() + StepsIn(run), 1U) << EventKindName(kind);
  }
}

TEST(OutputEvents, LeaveStepsOfTheClientInATableOfBothAsTheyWere) {
  Event printed = OfOutput(1, EventKind::kStep);
  printed.rank = 0;
  Event told = OfClient(2, EventKind::kStep, 0);
  told.fields.push_back({"scalar.loss", 0.25});
  const model::Run run = Built({printed, told});
  const StepTable& steps = run.steps.at(ProcessKey(0));
  EXPECT_EQ(steps.t_ns, std::vector<int64_t>{2 * kSecond});
  EXPECT_EQ(*steps.Column("scalar.loss"), std::vector<double>{0.25});
  EXPECT_EQ(steps.Column("line"), nullptr);
}

TEST(OutputEvents, LeaveExceptionsToAClientThatTellsThem) {
  const model::Run both =
      Built({OfOutput(1, EventKind::kException), OfClient(2, EventKind::kException)});
  ASSERT_EQ(both.events.size(), 1U);
  EXPECT_FALSE(IsFromOutput(both.events[0]));
  const model::Run other =
      Built({OfOutput(1, EventKind::kException), OfClient(2, EventKind::kStep)});
  EXPECT_EQ(other.events.size(), 1U);
}

TEST(OutputEvents, BelongToTheOnlyRank) {
  const model::Run one =
      Built({OfClient(0, EventKind::kHello, 3), OfOutput(1, EventKind::kEpochBegin),
             OfOutput(2, EventKind::kStep)});
  EXPECT_EQ(one.events.back().rank, 3);
  EXPECT_EQ(one.steps.count(ProcessKey(3)), 1U);
  const model::Run two = Built({OfClient(0, EventKind::kHello, 0),
                                OfClient(0, EventKind::kHello, 1), OfOutput(2, EventKind::kStep)});
  EXPECT_EQ(two.steps.count(ProcessKey()), 1U);
}

TEST(OutputEvents, AreAllThereIsInARunOfALog) {
  Event begin = Told(0, EventKind::kTrainBegin, {{"source", std::string("log")}});
  const model::Run run =
      Built({begin, OfOutput(1, EventKind::kStep)}, {{"source", "training log"}});
  EXPECT_EQ(StepsIn(run), 1U);
}

}  // namespace
}  // namespace epochmeter::model
