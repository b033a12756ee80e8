// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/plan_table.h"

#include <gtest/gtest.h>

#include <string>

namespace epochmeter::ingest::log {
namespace {

LinePlan PlanOf(Tier tier, bool events = false) {
  LinePlan plan;
  plan.tier = tier;
  plan.events = events;
  return plan;
}

const LinePlan* Learned(PlanTable& table, uint64_t hash, std::string_view text) {
  Skeleton skeleton;
  ReadSkeleton(text, &skeleton);
  return table.Learn(hash, text, skeleton)->plan;
}

TEST(PlanTable, AKindIsFoundByItsHash) {
  PlanTable table;
  EXPECT_EQ(table.Find(7), nullptr);
  const LineKind* added = table.Add(7, PlanOf(Tier::kLoss));
  EXPECT_EQ(added->hash, 7u);
  EXPECT_EQ(table.Find(7), added);
  EXPECT_EQ(table.Find(7)->plan->tier, Tier::kLoss);
  // In the same place of the table, and the one behind it.
  EXPECT_EQ(table.Find(7 + (uint64_t{1} << 32)), nullptr);
  table.Add(7 + (uint64_t{1} << 32), PlanOf(Tier::kHeader));
  EXPECT_EQ(table.Find(7)->plan->tier, Tier::kLoss);
  EXPECT_EQ(table.Find(7 + (uint64_t{1} << 32))->plan->tier, Tier::kHeader);
  EXPECT_EQ(table.Find(8), nullptr);
}

TEST(PlanTable, PlansOfRecordsStayWhereTheyAre) {
  PlanTable table;
  const LinePlan* first = table.Add(1, PlanOf(Tier::kLoss))->plan;
  for (uint64_t hash = 2; hash < 10'000; ++hash) table.Add(hash, PlanOf(Tier::kCounter));
  EXPECT_EQ(table.Find(1)->plan, first);
  EXPECT_EQ(first->tier, Tier::kLoss);
  EXPECT_EQ(table.Find(9'999)->plan->tier, Tier::kCounter);
}

TEST(PlanTable, OthersThatAreAlikeShareAPlan) {
  PlanTable table;
  const LinePlan* plain = table.Add(1, PlanOf(Tier::kNone))->plan;
  EXPECT_EQ(table.Add(2, PlanOf(Tier::kNone))->plan, plain);
  const LinePlan* event = table.Add(3, PlanOf(Tier::kNone, true))->plan;
  EXPECT_NE(event, plain);
  EXPECT_TRUE(event->events);
  EXPECT_FALSE(plain->events);
  LinePlan begins;
  begins.begins_eval = true;
  EXPECT_TRUE(table.Add(4, begins)->plan->begins_eval);
  EXPECT_FALSE(plain->begins_eval);
}

TEST(PlanTable, LearnsWhatALineSays) {
  PlanTable table;
  EXPECT_EQ(Learned(table, 1, "epoch 1 step 20 loss: 0.5")->tier, Tier::kLoss);
  EXPECT_EQ(Learned(table, 2, "Loading files")->tier, Tier::kNone);
  EXPECT_EQ(Learned(table, 3, "cost: 0.5")->tier, Tier::kExtra);
  EXPECT_EQ(table.Find(1)->plan->tier, Tier::kLoss);
}

TEST(PlanTable, AFloodOfKindsIsForgottenButForTheRecords) {
  PlanTable table;
  const LinePlan* record = Learned(table, 1, "epoch 1 step 20 loss: 0.5");
  for (uint64_t hash = 2; hash < 140'000; ++hash) table.Add(hash, PlanOf(Tier::kNone));
  ASSERT_NE(table.Find(1), nullptr);
  EXPECT_EQ(table.Find(1)->plan, record);
  EXPECT_EQ(table.Find(2), nullptr);
  EXPECT_NE(table.Find(139'999), nullptr);
  // From now on only lines with a word of records are planned.
  EXPECT_EQ(Learned(table, 200'001, "cost: 0.5")->tier, Tier::kNone);
  EXPECT_EQ(Learned(table, 200'002, "loss: 0.5")->tier, Tier::kExtra);
  EXPECT_TRUE(Learned(table, 200'003, "RuntimeError: CUDA error: invalid argument")->events);
}

}  // namespace
}  // namespace epochmeter::ingest::log
