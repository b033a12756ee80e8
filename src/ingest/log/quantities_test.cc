// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/quantities.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>

namespace epochmeter::ingest::log {
namespace {

TEST(Quantities, NumbersHaveTheSameBitsAsTheCLibrarys) {
  std::mt19937_64 random(7);
  const char* const formats[] = {"%.6f", "%.4e", "%.3f", "%.9g", "%.17g", "%.12f", "%.0f"};
  char text[64];
  for (int i = 0; i < 200000; ++i) {
    double value =
        std::ldexp(static_cast<double>(random() >> 11), -static_cast<int>(random() % 90));
    if ((random() & 1) != 0) value = -value;
    const int size = std::snprintf(text, sizeof text, formats[random() % 7], value);
    const NumberScan scan = ScanNumber({text, static_cast<size_t>(size)});
    ASSERT_EQ(scan.number, std::strtod(text, nullptr)) << text;
    ASSERT_EQ(scan.size, static_cast<size_t>(size)) << text;
  }
}

TEST(Quantities, ANumberEndsWhereItsDigitsEnd) {
  EXPECT_EQ(ScanNumber("0.25s").size, 4u);
  EXPECT_EQ(ScanNumber("1e").size, 1u);  // no exponent without digits
  EXPECT_EQ(ScanNumber("3.").size, 2u);
  EXPECT_EQ(ScanNumber("7,8").size, 1u);
  EXPECT_EQ(ScanNumber("12,345,678 x").number, 12345678.0);
  EXPECT_EQ(ScanNumber("1,2345").size, 1u);
  EXPECT_EQ(ScanNumber("0,123").size, 1u);
  EXPECT_EQ(ScanNumber("-").size, 0u);
  EXPECT_EQ(ScanNumber("").size, 0u);
  EXPECT_EQ(ScanNumber("+5").number, 5.0);
}

TEST(Quantities, NumbersThatAreNotFinite) {
  EXPECT_TRUE(std::isnan(ScanNumber("nan,").number));
  EXPECT_EQ(ScanNumber("nan,").size, 3u);
  EXPECT_EQ(ScanNumber("-inf").number, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(ScanNumber("Infinity").size, 8u);
  EXPECT_EQ(ScanNumber("information").size, 0u);
  EXPECT_EQ(ScanNumber("nano").size, 0u);
  EXPECT_EQ(ScanNumber("1e999").number, std::numeric_limits<double>::infinity());
  EXPECT_EQ(ScanNumber("1e-999").number, 0.0);
}

TEST(Quantities, NumbersInTheWrappingsOfPrograms) {
  EXPECT_EQ(ParseNumberText("'0.7331'"), 0.7331);
  EXPECT_EQ(ParseNumberText(" 1.203115E+01 "), 12.03115);
  EXPECT_EQ(ParseNumberText("tensor(0.125, device='cuda:0')"), 0.125);
  EXPECT_EQ(ParseNumberText("-0.0000e+00"), 0.0);
  const auto rounded = ReadNumberText("13K");
  ASSERT_TRUE(rounded);
  EXPECT_EQ(rounded->number, 13000);
  EXPECT_TRUE(rounded->rounded);
  const auto with_unit = ReadNumberText("81ms");
  ASSERT_TRUE(with_unit);
  EXPECT_EQ(with_unit->number, 81);
  EXPECT_EQ(with_unit->unit, "ms");
  EXPECT_FALSE(with_unit->rounded);
  for (const char* text : {"", "3/10", "1:20", "?", "12_000", "abc"}) {
    EXPECT_FALSE(ParseNumberText(text)) << text;
  }
}

TEST(Quantities, DurationsOfEveryForm) {
  const std::pair<const char*, double> cases[] = {{"0:00:49", 49},
                                                  {"1 day, 16:33:54", 146034},
                                                  {"10 days, 18:04:28", 929068},
                                                  {"34:13:14", 123194},
                                                  {"05:57", 357},
                                                  {"3 days, 17:44:15.5", 323055.5},
                                                  {"46s215ms", 46.215},
                                                  {"242s", 242},
                                                  {"2h13m", 7980},
                                                  {"1d 2h", 93600},
                                                  {"00:05:57.125", 357.125},
                                                  {"3-04:05:06", 273906},
                                                  {"1:02:03:04", 93784},
                                                  {"0 days 00:12:13", 733},
                                                  {"3 min 20 sec", 200},
                                                  {"1.5 hours", 5400},
                                                  {"1小时20分30秒", 4830},
                                                  {"-1 day, 23:59:58", -2}};
  for (const auto& [text, seconds] : cases) {
    const auto got = ParseDurationText(text);
    ASSERT_TRUE(got) << text;
    EXPECT_DOUBLE_EQ(*got, seconds) << text;
  }
}

TEST(Quantities, WhatIsNoDurationHasNoSeconds) {
  for (const char* text :
       {"", "?", "--:--", "12", "00:04<10:01", "5:99", "2 epochs", "a:b", "1:"}) {
    EXPECT_FALSE(ParseDurationText(text)) << text;
  }
}

}  // namespace
}  // namespace epochmeter::ingest::log
