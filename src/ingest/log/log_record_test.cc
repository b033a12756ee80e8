// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/log_record.h"

#include <gtest/gtest.h>

#include <set>

namespace epochmeter::ingest::log {
namespace {

TEST(LogRecord, EveryRoleHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int role = 0; role <= static_cast<int>(Role::kRank); ++role) {
    names.insert(RoleName(static_cast<Role>(role)));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(Role::kRank) + 1);
}

TEST(LogRecord, AValueIsFoundByItsRole) {
  const LogValue values[] = {
      {.key = "lr", .number = 0.1, .value = 0.1, .role = Role::kLearningRate},
      {.key = "time", .number = 3, .value = 0.003, .role = Role::kStepTime}};
  LogRecord record;
  record.values = values;
  EXPECT_EQ(record.Number(Role::kStepTime), 3);
  EXPECT_EQ(record.Value(Role::kStepTime), 0.003);
  EXPECT_EQ(record.Number(Role::kLoss), std::nullopt);
}

}  // namespace
}  // namespace epochmeter::ingest::log
