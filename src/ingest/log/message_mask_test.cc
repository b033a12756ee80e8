// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/message_mask.h"

#include <gtest/gtest.h>

#include <string>

namespace epochmeter::ingest::log {
namespace {

std::string Mask(std::string_view message) {
  MaskedMessage masked;
  MaskMessage(message, masked);
  return masked.text;
}

TEST(MessageMask, WhatVariesBecomesAStar) {
  EXPECT_EQ(Mask("box 17: area -0.25, id 3"), "box *: area *, id *");
  EXPECT_EQ(Mask("step   10/  900 loss 1.5e-05"), "step */ * loss *");
  EXPECT_EQ(Mask("at 0x7f3a10c0 took 12:34:56"), "at * took *");
  EXPECT_EQ(Mask("loaded /data/a s3://b/c.txt from 's3'"), "loaded * * from *");
  EXPECT_EQ(Mask("commit 9f86d081884c7d65 done"), "commit * done");
  EXPECT_EQ(Mask("lr: 0.1 conv1_2 top5"), "lr: * conv*_* top*");
  EXPECT_EQ(Mask("didn't find decade"), "didn't find decade");
}

TEST(MessageMask, PaddingAndBarsHaveNoLength) {
  EXPECT_EQ(Mask("a    b\tc "), Mask("a b c"));
  EXPECT_EQ(Mask("10%|█         | 1/9"), Mask("90%|████████▏ | 8/9"));
  EXPECT_EQ(Mask("-----"), Mask("----------"));
}

TEST(MessageMask, LongMessagesCountByTheirBegin) {
  std::string message;
  for (int i = 0; i < 1000; ++i) message += "word ";
  MaskedMessage masked;
  MaskMessage(message, masked);
  EXPECT_EQ(masked.tokens, MaskedMessage::kMostTokens);
  MaskMessage(std::string(100000, 'x'), masked);
  EXPECT_EQ(masked.tokens, 1u);
  EXPECT_EQ(masked.text.size(), MaskedMessage::kMostBytes);
  MaskMessage("", masked);
  EXPECT_EQ(masked.tokens, 0u);
}

TEST(MessageMask, AlarmsFollowTheLevelThenTheWords) {
  EXPECT_EQ(AlarmOf(LogLevel::kWarning, "fine"), Alarm::kWarning);
  EXPECT_EQ(AlarmOf(LogLevel::kFatal, "fine"), Alarm::kError);
  EXPECT_EQ(AlarmOf(LogLevel::kInfo, "ValueError: bad shape"), Alarm::kError);
  EXPECT_EQ(AlarmOf(LogLevel::kNone, "x.py:3: UserWarning: old"), Alarm::kWarning);
  EXPECT_EQ(AlarmOf(LogLevel::kNone, "Traceback (most recent call last):"), Alarm::kError);
  EXPECT_EQ(AlarmOf(LogLevel::kNone, "Error: queue is closed"), Alarm::kError);
  EXPECT_EQ(AlarmOf(LogLevel::kNone, "Connection refused, will retry"), Alarm::kHint);
  for (const char* fine : {"train error: 0.25", "error 0.1", "fail_fast: True", "Error: 0.25",
                           "terrors of the night", "timeout: 1800", "loss 0.1", ""}) {
    EXPECT_EQ(AlarmOf(LogLevel::kInfo, fine), Alarm::kNone) << fine;
  }
}

}  // namespace
}  // namespace epochmeter::ingest::log
