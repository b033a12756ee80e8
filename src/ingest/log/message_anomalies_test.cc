// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/message_anomalies.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace epochmeter::ingest::log {
namespace {

// A log of a training: a record every ten lines, between them what `other` writes.
class Training {
 public:
  void Line(const std::string& text) {
    LinePlace place;
    place.line = ++line_;
    table.Add(std::hash<std::string>{}(text), text, place);
  }
  void Record() {
    ++step_;
    Line("2026-03-08 10:00:00 INFO step: " + std::to_string(step_) + " loss: 0.5");
    LinePlace place;
    place.line = line_;
    table.NoteStep(place, step_);
  }
  void Records(int count) {
    for (int i = 0; i < count; ++i) Record();
  }
  uint64_t line() const { return line_; }
  std::vector<MessageAnomaly> Find() const { return FindMessageAnomalies(table); }

  TemplateTable table;

 private:
  uint64_t line_ = 0;
  int step_ = 0;
};

TEST(MessageAnomalies, AStormOfWarningsIsABurstWithItsLinesAndSteps) {
  Training log;
  log.Records(2000);
  for (int i = 0; i < 300; ++i) log.Line("WARNING: sample " + std::to_string(i) + " can't be read");
  log.Records(2000);
  const auto found = log.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, AnomalyKind::kBurst);
  EXPECT_EQ(found[0].text, "sample * can't be read");
  EXPECT_EQ(found[0].first_line, 2001u);
  EXPECT_EQ(found[0].last_line, 2300u);
  EXPECT_EQ(found[0].count, 300u);
  EXPECT_EQ(found[0].step_before, 2000);
  EXPECT_EQ(found[0].step_after, 2001);
  EXPECT_NE(found[0].why.en.find("300 of its 300 messages stand in lines 2001 to 2300, between "
                                 "steps 2000 and 2001"),
            std::string::npos)
      << found[0].why.en;
  EXPECT_NE(found[0].why.zh.find("2001"), std::string::npos);
}

TEST(MessageAnomalies, MessagesOfEveryEpochAreAHabit) {
  Training log;
  for (int epoch = 0; epoch < 12; ++epoch) {
    log.Records(300);
    for (int i = 0; i < 60; ++i)
      log.Line("2026-03-08 10:00:00 INFO eval batch " + std::to_string(i));
    log.Line("2026-03-08 10:00:00 WARNING the scheduler was stepped before epoch end");
    log.Line("2026-03-08 10:00:00 INFO saved the state of epoch " + std::to_string(epoch));
  }
  EXPECT_TRUE(log.Find().empty());
}

TEST(MessageAnomalies, WhatTheStartPrintsIsNoAnomaly) {
  Training log;
  for (int i = 0; i < 80; ++i) log.Line("WARNING: key layer" + std::to_string(i) + ".w not found");
  for (int i = 0; i < 100; ++i) log.Line("  option_" + std::to_string(i) + ": value");
  log.Records(3000);
  log.Line("Training finished");
  EXPECT_TRUE(log.Find().empty());
}

TEST(MessageAnomalies, ALateErrorWithItsTraceIsOneNewMessage) {
  Training log;
  log.Records(1500);
  log.Line("Traceback (most recent call last):");
  log.Line("  File \"train.py\", line 30, in <module>");
  log.Line("    main()");
  log.Line("ValueError: shapes (3, 4) and (5, 6) do not match");
  const auto found = log.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, AnomalyKind::kNewMessage);
  EXPECT_EQ(found[0].first_line, 1504u);
  EXPECT_EQ(found[0].beside, 3u);
  EXPECT_EQ(found[0].step_before, 1500);
  EXPECT_FALSE(found[0].step_after);
  EXPECT_EQ(found[0].why.en,
            "Not seen in the 1503 lines before line 1504, after step 1500, with 3 other new "
            "messages next to it.");
}

TEST(MessageAnomalies, AQuietMessageInAQuietLogIsNews) {
  Training log;
  log.Line("2026-03-08 10:00:00 INFO start");
  log.Records(1000);
  log.Line("2026-03-08 10:00:00 INFO reducing the learning rate to 0.001");
  log.Records(1000);
  const auto found = log.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].text, "reducing the learning rate to *");
  EXPECT_EQ(found[0].alarm, Alarm::kNone);
}

TEST(MessageAnomalies, GeneratedTextsAreNoNews) {
  Training log;
  uint64_t number = 1;
  const auto word = [&number] {
    number = number * 6364136223846793005U + 1442695040888963407U;
    std::string text;
    for (int i = 0; i < 5; ++i) text += static_cast<char>('a' + (number >> (20 + 7 * i)) % 26);
    return text;
  };
  for (int block = 0; block < 40; ++block) {
    log.Records(60);
    for (int sample = 0; sample < 4; ++sample) {
      std::string text = "it failed to " + word();
      for (int i = 0; i < 6 + sample; ++i) text += ' ' + word();
      log.Line(text);
    }
  }
  EXPECT_TRUE(log.Find().empty());
}

TEST(MessageAnomalies, ShortLogsHaveNoUsual) {
  Training log;
  log.Records(50);
  log.Line("ValueError: no");
  EXPECT_TRUE(log.Find().empty());
}

TEST(MessageAnomalies, TheWorstComeFirstAndNotTooMany) {
  Training log;
  log.Records(500);
  for (int i = 0; i < 60; ++i) {
    const std::string name(static_cast<size_t>(i % 7 + 3), static_cast<char>('a' + i % 26));
    log.Line("WARNING: " + name + " is odd in " + std::string(1, static_cast<char>('a' + i / 8)));
    log.Records(30);
  }
  log.Line("RuntimeError: it broke");
  log.Record();
  const auto found = log.Find();
  ASSERT_FALSE(found.empty());
  EXPECT_LE(found.size(), 20u);
  EXPECT_EQ(found[0].alarm, Alarm::kError);
}

}  // namespace
}  // namespace epochmeter::ingest::log
