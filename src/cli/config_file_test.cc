// SPDX-License-Identifier: Apache-2.0
#include "cli/config_file.h"

#include <gtest/gtest.h>

namespace epochmeter::cli {
namespace {

struct Parsed {
  Config config;
  std::vector<base::Error> problems;
};

Parsed Parse(std::string_view text) {
  Parsed parsed;
  parsed.config = ParseConfig(text, "c.toml", &parsed.problems);
  return parsed;
}

TEST(ConfigFile, NothingIsWhatIsBuiltIn) {
  const Parsed parsed = Parse("");
  EXPECT_TRUE(parsed.problems.empty());
  for (const auto& limit : diagnose::LimitTable()) {
    EXPECT_EQ(parsed.config.limits[limit.id], limit.value);
  }
  EXPECT_TRUE(parsed.config.rates.gpus.empty());
  EXPECT_EQ(parsed.config.rates.pue, 1);
}

TEST(ConfigFile, LimitsMayBeDottedNestedOrQuoted) {
  for (const char* text : {"[limits]\ndata_starvation.info_ratio = 0.5\n",
                           "[limits.data_starvation]\ninfo_ratio = 0.5\n",
                           "[limits]\n\"data_starvation.info_ratio\" = 0.5\n",
                           "limits = {data_starvation = {info_ratio = 0.5}}\n"}) {
    const Parsed parsed = Parse(text);
    EXPECT_TRUE(parsed.problems.empty()) << text;
    EXPECT_EQ(parsed.config.limits["data_starvation.info_ratio"], 0.5) << text;
  }
}

TEST(ConfigFile, AWholeNumberIsANumber) {
  EXPECT_EQ(
      Parse("[limits]\ndata_starvation.info_ratio = 1").config.limits["data_starvation.info_ratio"],
      1);
}

TEST(ConfigFile, AnUnknownLimitNamesItsLineAndTheNearest) {
  const Parsed parsed = Parse("[limits]\n\ndata_starvation.info_rato = 0.5\n");
  ASSERT_EQ(parsed.problems.size(), 1U);
  EXPECT_EQ(parsed.problems[0].where, "c.toml:3");
  EXPECT_NE(parsed.problems[0].what_to_do.find("data_starvation.info_ratio"), std::string::npos);
}

TEST(ConfigFile, WhatIsGoodHoldsBesideWhatIsBad) {
  const Parsed parsed = Parse(
      "[limits]\ndata_starvation.info_ratio = 0.5\ndata_starvation.warning_ratio = -1\n"
      "[energy]\npue = 1.2\n[carbon]\ng_per_kwh = 'much'\n[what]\n");
  EXPECT_EQ(parsed.problems.size(), 3U);
  EXPECT_EQ(parsed.config.limits["data_starvation.info_ratio"], 0.5);
  EXPECT_EQ(parsed.config.limits["data_starvation.warning_ratio"], 0.2);
  EXPECT_EQ(parsed.config.rates.pue, 1.2);
  EXPECT_FALSE(parsed.config.rates.carbon_g_per_kwh);
}

TEST(ConfigFile, NumbersThatAreNoneAreTold) {
  for (const char* value : {"nan", "inf", "-0.1", "true", "\"0.5\"", "[1]", "2020-01-01"}) {
    const Parsed parsed = Parse("[limits]\ndata_starvation.info_ratio = " + std::string(value));
    EXPECT_EQ(parsed.problems.size(), 1U) << value;
    EXPECT_EQ(parsed.config.limits["data_starvation.info_ratio"], 0.05) << value;
  }
}

TEST(ConfigFile, PricesOfTheSectionHoldForGpusThatNoEntryNames) {
  const Parsed parsed = Parse(
      "[prices]\ngpu_hour = 1\ncurrency = 'EUR'\nelectricity_kwh = 0.3\n"
      "[[prices.gpu]]\nname = '*H200*'\ngpu_hour = 3\nidle_gpu_hour = 2\n");
  ASSERT_TRUE(parsed.problems.empty()) << parsed.problems[0].Message();
  ASSERT_EQ(parsed.config.rates.gpus.size(), 2U);
  EXPECT_EQ(parsed.config.rates.gpus[0].name, "*H200*");
  EXPECT_EQ(parsed.config.rates.gpus[0].idle_gpu_hour, 2);
  EXPECT_EQ(parsed.config.rates.gpus[1].name, "*");
  EXPECT_EQ(parsed.config.rates.gpus[1].gpu_hour, 1);
  EXPECT_EQ(parsed.config.rates.currency, "EUR");
}

TEST(ConfigFile, APriceWithoutAnHourIsNone) {
  for (const char* text : {"[[prices.gpu]]\nname = 'x'\n", "[prices]\nidle_gpu_hour = 1\n",
                           "[[prices.gpu]]\nname = ''\ngpu_hour = 1\n", "[prices]\ngpu = 3\n",
                           "[prices]\ngpu = [3]\n"}) {
    const Parsed parsed = Parse(text);
    EXPECT_FALSE(parsed.problems.empty()) << text;
    EXPECT_TRUE(parsed.config.rates.gpus.empty()) << text;
  }
}

TEST(ConfigFile, ATextThatIsNoTomlChangesNothing) {
  for (const std::string& text :
       {std::string("[limits\n"), std::string("a = = 1"), std::string("\xff\xfe"),
        std::string("[energy]\npue = 1.5\n\0x", 22), std::string(100000, '['),
        "a = " + std::string(5000, '[')}) {
    const Parsed parsed = Parse(text);
    ASSERT_EQ(parsed.problems.size(), 1U);
    EXPECT_NE(parsed.problems[0].where.find("c.toml:"), std::string::npos);
    EXPECT_EQ(parsed.config.rates.pue, 1);
  }
}

TEST(ConfigFile, WhatTheParserWouldStumbleOverIsRefused) {
  for (const char* text :
       {"[\n", "[[\n", "[[[", "\u00e9\n", "[\u00e9]\n", "a = 12:x\n", "nn\u00e9\n\u00e9\n"}) {
    const Parsed parsed = Parse(text);
    ASSERT_EQ(parsed.problems.size(), 1U) << text;
    EXPECT_NE(parsed.problems[0].where.find("c.toml:"), std::string::npos);
  }
}

TEST(ConfigFile, TextsMayHoldAnyLetters) {
  for (const char* text :
       {"[prices]\ncurrency = '\u5143'\n", "[prices]\ncurrency = \"\u5143\" # \u20ac\n"}) {
    const Parsed parsed = Parse(text);
    EXPECT_TRUE(parsed.problems.empty()) << text;
    EXPECT_EQ(parsed.config.rates.currency, "\u5143");
  }
  EXPECT_EQ(Parse("[prices]\ncurrency = '~u~ ~uZZ~ ~'").config.rates.currency, "~u~ ~uZZ~ ~");
}

TEST(ConfigFile, SectionsThatAreNoTablesAreTold) {
  EXPECT_EQ(Parse("limits = 3\nprices = 'x'\nenergy = []\ncarbon = 1\n").problems.size(), 4U);
}

}  // namespace
}  // namespace epochmeter::cli
