// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/stamp_clock.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "ingest/log/stamp_text.h"

namespace epochmeter::ingest::log {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

int64_t Utc(std::string_view text) {
  const auto stamp = ParseStamp(text);
  EXPECT_TRUE(stamp) << text;
  return stamp ? stamp->ns : 0;
}

// In UTC unless told otherwise, of a file last changed at `modified`.
ClockFacts Facts(std::string_view modified, std::optional<int64_t> zone_offset_s = 0) {
  return {.modified_ns = Utc(modified), .zone_offset_s = zone_offset_s, .now_ns = Utc(modified)};
}

std::optional<int64_t> Place(StampClock& clock, std::string_view text) {
  const auto stamp = ParseStampText(text);
  EXPECT_TRUE(stamp) << text;
  return stamp ? clock.WallNs(*stamp) : std::nullopt;
}

bool Notes(const StampClock& clock, std::string_view words) {
  for (const std::string& note : clock.Notes()) {
    if (note.find(words) != std::string::npos) return true;
  }
  return false;
}

TEST(StampClock, FullDatesNeedNoAssumptionButTheZone) {
  StampClock clock(Facts("2026-03-09 00:00:00", 8 * 3600));
  EXPECT_EQ(Place(clock, "2026-03-08 09:14:55,125"),
            Utc("2026-03-08 01:14:55") + 125 * kSecond / 1000);
  ASSERT_EQ(clock.Notes().size(), 1u);
  EXPECT_TRUE(Notes(clock, "UTC+08:00, as asked for"));
  StampClock zoned(Facts("2026-03-09 00:00:00", 8 * 3600));
  EXPECT_EQ(Place(zoned, "2026-03-08T09:14:55Z"), Utc("2026-03-08 09:14:55"));
  EXPECT_EQ(Place(zoned, "1772961295.5"), 1772961295 * kSecond + kSecond / 2);
  EXPECT_TRUE(zoned.Notes().empty());
}

TEST(StampClock, TheYearEndsWithTheFileAndTurnsInWinter) {
  StampClock clock(Facts("2026-01-03 12:00:00"));
  EXPECT_EQ(Place(clock, "Dec 30 23:00:00"), Utc("2025-12-30 23:00:00"));
  EXPECT_EQ(Place(clock, "Jan  1 01:00:00"), Utc("2026-01-01 01:00:00"));
  EXPECT_TRUE(Notes(clock, "into 2025"));
}

TEST(StampClock, FullDatesOfTheSameFileTellTheYear) {
  StampClock clock(Facts("2026-11-30 12:00:00"));
  clock.SurveySample(
      "I1231 23:59:00.000000  11 init.cc:3] up\n"
      "2021-12-31 23:59:30 [INFO]\tepoch 1\n",
      "");
  EXPECT_EQ(Place(clock, "Dec 31 23:59:00"), Utc("2021-12-31 23:59:00"));
  EXPECT_EQ(Place(clock, "2021-12-31 23:59:30"), Utc("2021-12-31 23:59:30"));
  EXPECT_EQ(Place(clock, "Jan  1 00:00:10"), Utc("2022-01-01 00:00:10"));
  EXPECT_TRUE(Notes(clock, "full dates of the same file"));
}

TEST(StampClock, TimesOfDayEndWithTheFile) {
  const std::string_view log = "[22:00:00.5] a\n[23:30:00.5] b\n[00:10:00.5] c\n[00:05:00.5] d\n";
  StampClock clock(Facts("2026-03-09 00:12:00"));
  clock.SurveySample(log, "");
  EXPECT_EQ(Place(clock, "22:00:00"), Utc("2026-03-08 22:00:00"));
  EXPECT_EQ(Place(clock, "23:30:00"), Utc("2026-03-08 23:30:00"));
  EXPECT_EQ(Place(clock, "00:10:00"), Utc("2026-03-09 00:10:00"));
  EXPECT_EQ(Place(clock, "00:05:00"), Utc("2026-03-09 00:05:00"));
  EXPECT_TRUE(Notes(clock, "first was put on 2026-03-08"));
  EXPECT_TRUE(Notes(clock, "midnight was passed 1 times"));
  EXPECT_TRUE(Notes(clock, "by up to 5 min"));
}

TEST(StampClock, ATimeOfDayStaysNearTheDatesAroundIt) {
  StampClock clock(Facts("2026-11-30 12:00:00"));
  EXPECT_EQ(Place(clock, "2025-05-01 23:59:59"), Utc("2025-05-01 23:59:59"));
  EXPECT_EQ(Place(clock, "00:00:01"), Utc("2025-05-02 00:00:01"));
  EXPECT_EQ(Place(clock, "23:59:50"), Utc("2025-05-01 23:59:50"));
}

TEST(StampClock, ANumberOverTwelveTellsTheOrder) {
  StampClock clock(Facts("2026-11-30 12:00:00"));
  clock.SurveySample("05/06/24 10:00:00 INFO a\n13/06/24 10:00:00 INFO b\n", "");
  EXPECT_EQ(Place(clock, "05/06/24 10:00:00"), Utc("2024-06-05 10:00:00"));
  EXPECT_EQ(Place(clock, "13/06/24 10:00:00"), Utc("2024-06-13 10:00:00"));
  EXPECT_TRUE(Notes(clock, "day/month: a number over 12"));
}

TEST(StampClock, DatesThatFollowEachOtherTellTheOrder) {
  StampClock clock(Facts("2026-11-30 12:00:00"));
  clock.SurveySample("05/06/2024 10:00:00 a\n06/06/2024 10:00:00 b\n07/06/2024 10:00:00 c\n", "");
  EXPECT_EQ(Place(clock, "05/06/2024 10:00:00"), Utc("2024-06-05 10:00:00"));
  EXPECT_TRUE(Notes(clock, "jump between months"));
}

TEST(StampClock, AYearInFrontIsFoundByTheFilesTime) {
  StampClock clock(Facts("2017-06-10 12:00:00"));
  clock.SurveySample("17/06/09 20:10:40 INFO executor.Executor: Running\n", "");
  EXPECT_EQ(Place(clock, "17/06/09 20:10:40"), Utc("2017-06-09 20:10:40"));
  EXPECT_TRUE(Notes(clock, "year/month/day"));
}

TEST(StampClock, WithoutASurveyTheOrderTurnsAtTheFirstProof) {
  StampClock clock(Facts("2026-11-30 12:00:00"));
  EXPECT_EQ(Place(clock, "05/06/2024 10:00:00"), Utc("2024-05-06 10:00:00"));
  EXPECT_EQ(Place(clock, "13/06/2024 10:00:00"), Utc("2024-06-13 10:00:00"));
  EXPECT_EQ(Place(clock, "01/07/2024 10:00:00"), Utc("2024-07-01 10:00:00"));
  EXPECT_TRUE(Notes(clock, "in another order"));
}

TEST(StampClock, StampsWithAZoneTellThatOfTheirNeighbours) {
  std::string log;
  for (int i = 0; i < 4; ++i) {
    const std::string minute = std::to_string(10 + i);
    log += "2026-03-08T01:" + minute + ":00Z started\n2026-03-08 09:" + minute + ":05,000 step\n";
  }
  StampClock clock(Facts("2026-03-08 02:00:00", std::nullopt));
  clock.SurveySample(log, "");
  EXPECT_EQ(Place(clock, "2026-03-08 09:10:05"), Utc("2026-03-08 01:10:05"));
  EXPECT_TRUE(Notes(clock, "UTC+08:00: that is how far"));
}

TEST(StampClock, DaysThatCantBeHaveNoTime) {
  StampClock clock(Facts("2026-11-30 12:00:00"));
  EXPECT_FALSE(Place(clock, "2026-02-30 10:00:00"));
  EXPECT_EQ(Place(clock, "Feb 29 10:00:00"), Utc("2024-02-29 10:00:00"));
}

TEST(StampClock, AnAppendedRestartIsNoClockError) {
  StampClock clock(Facts("2026-11-30 12:00:00"));
  Place(clock, "2026-03-08 09:00:00");
  Place(clock, "2026-04-08 03:00:00");
  EXPECT_FALSE(Notes(clock, "lie before"));
  Place(clock, "2026-04-08 02:00:00");
  EXPECT_TRUE(Notes(clock, "1 stamps lie before the one above them, by up to 60 min"));
}

}  // namespace
}  // namespace epochmeter::ingest::log
