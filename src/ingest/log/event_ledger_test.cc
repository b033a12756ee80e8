// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/event_ledger.h"

#include <gtest/gtest.h>

namespace epochmeter::ingest::log {
namespace {

LogEvent At(uint64_t line, const std::string& kind, const std::string& text) {
  LogEvent event;
  event.kind = kind;
  event.place.line = line;
  event.text = text;
  return event;
}

TEST(EventLedger, AStormOfEqualLinesIsOneMessageWithACount) {
  EventLedger ledger;
  for (uint64_t i = 0; i < 1024; ++i) {
    ledger.Add(At(10 + i, "cuda_assert",
                  "Loss.cu:91: block: [0,0,0], thread: [" + std::to_string(i) + ",0,0] failed"));
  }
  ledger.Add(At(5000, "cuda_assert", "Index.cu:7: another assertion failed"));
  const auto rows = ledger.Take();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].count, 1025U);
  EXPECT_EQ(rows[0].lines.size(), 12U);
  EXPECT_EQ(rows[0].last_line, 5000U);
  ASSERT_EQ(rows[0].messages.size(), 2U);
  EXPECT_EQ(rows[0].messages[0].count, 1024U);
  EXPECT_EQ(rows[0].messages[0].last_line, 1033U);
}

TEST(EventLedger, TracebacksAreToldApartByWhatEndedThem) {
  EventLedger ledger;
  for (const char* type : {"KeyError", "ValueError", "KeyError"}) {
    LogEvent event = At(1, "traceback", "Traceback (most recent call last):");
    event.numbers.push_back({"type", std::string(type)});
    event.numbers.push_back({"message", std::string("'a'")});
    ledger.Add(event);
  }
  const auto rows = ledger.Take();
  ASSERT_EQ(rows.size(), 1U);
  ASSERT_EQ(rows[0].messages.size(), 2U);
  EXPECT_EQ(rows[0].messages[0].text, "KeyError: 'a'");
  EXPECT_EQ(rows[0].messages[0].count, 2U);
}

TEST(EventLedger, KindsComeInTheOrderOfTheirFirstLines) {
  EventLedger ledger;
  ledger.Add(At(9, "killed", "Killed"));
  ledger.Add(At(3, "warning", "slow"));
  const auto rows = ledger.Take();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].kind, "warning");
  EXPECT_FALSE(rows[0].bad);
  EXPECT_TRUE(rows[1].bad);
}

TEST(EventLedger, MemoryIsBoundedAndAllEventsAreCounted) {
  EventLedger ledger;
  for (uint64_t i = 0; i < 2000; ++i) {
    ledger.Add(At(i + 1, "warning",
                  std::string(1, static_cast<char>('a' + i % 26)) +
                      std::string(1, static_cast<char>('a' + i / 26 % 26))));
  }
  const auto rows = ledger.Take();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].count, 2000U);
  EXPECT_EQ(rows[0].messages.size(), 32U);
}

}  // namespace
}  // namespace epochmeter::ingest::log
