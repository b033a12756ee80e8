// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/columns.h"

#include <gtest/gtest.h>

#include <string>

namespace epochmeter::ingest::log {
namespace {

std::string Names(std::string_view header) {
  std::string all;
  for (const std::string& name : ReadColumns(header).names) all += (all.empty() ? "" : "|") + name;
  return all;
}

LinePlan PlanRow(std::string_view header, std::string_view row) {
  Skeleton skeleton;
  ReadSkeleton(row, &skeleton);
  return MakeRowPlan(row, ReadLinePrefix(row), skeleton, ReadColumns(header));
}

// "role@offset in the row", of those with a meaning.
std::string Roles(std::string_view header, std::string_view row) {
  Skeleton skeleton;
  ReadSkeleton(row, &skeleton);
  std::string all;
  for (const FieldPlan& field : PlanRow(header, row).fields) {
    if (field.role == Role::kOther) continue;
    all += (all.empty() ? "" : " ") + std::string(RoleName(field.role)) + "@" +
           std::to_string(skeleton.begin[field.number]);
  }
  return all;
}

TEST(Columns, NamesAreCutAtTheSeparator) {
  EXPECT_EQ(Names("epoch,step,loss"), "epoch|step|loss");
  EXPECT_EQ(Names("| Epoch | Train Loss |"), "Epoch|Train Loss");
  EXPECT_EQ(Names("epoch\ttrain loss"), "epoch|train loss");
  EXPECT_EQ(Names("epoch   train_loss   time"), "epoch|train_loss|time");
  EXPECT_EQ(Names("Epoch   Train Loss   Remaining Time"), "Epoch|Train Loss|Remaining Time");
  EXPECT_EQ(Names("E    #       LOSS TOK2VEC"), "epoch|step|LOSS TOK2VEC");
  EXPECT_EQ(ReadColumns("a,b").separator, ',');
  EXPECT_EQ(ReadColumns("a   b").separator, ' ');
}

TEST(Columns, OtherNamesAreOtherColumns) {
  EXPECT_EQ(ReadColumns("epoch,loss").hash, ReadColumns("epoch, loss").hash);
  EXPECT_NE(ReadColumns("epoch,loss").hash, ReadColumns("epoch,lossy").hash);
  EXPECT_NE(ReadColumns("ab,c").hash, ReadColumns("a,bc").hash);
}

TEST(Columns, ARowHasTheNamesAboveIt) {
  EXPECT_EQ(Roles("epoch,step,loss,lr", "2,150,0.5,1e-3"), "epoch@0 step@2 loss@6 lr@10");
  EXPECT_EQ(Roles("epoch   train_loss   seed", "  3       0.25       7"), "epoch@2 loss@10");
  EXPECT_EQ(PlanRow("epoch,step,loss", "2,150,0.5").tier, Tier::kLoss);
  EXPECT_EQ(PlanRow("epoch,lr", "2,0.5").tier, Tier::kFigures);
}

TEST(Columns, AStampInFrontIsNoCell) {
  EXPECT_EQ(Roles("epoch   loss", "[2031-05-06 07:08:09] 4   0.5"), "epoch@22 loss@26");
}

TEST(Columns, ARowThatDoesNotFitIsNone) {
  EXPECT_EQ(PlanRow("epoch,step,loss", "2,150").tier, Tier::kNone);
  EXPECT_EQ(PlanRow("epoch,step,loss", "2,150,0.5,7").tier, Tier::kNone);
  EXPECT_EQ(PlanRow("epoch   step   loss", "").tier, Tier::kNone);
}

TEST(Columns, ABarMayFollowTheCells) {
  const LinePlan plan =
      PlanRow("Epoch   gpu_mem   loss", "1/3   2.5G   0.5: 100%|##| 8/8 [00:04<00:00, 2.00it/s]");
  EXPECT_TRUE(plan.bar);
  EXPECT_EQ(plan.tier, Tier::kLoss);
}

}  // namespace
}  // namespace epochmeter::ingest::log
