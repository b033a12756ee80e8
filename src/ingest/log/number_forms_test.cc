// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/number_forms.h"

#include <gtest/gtest.h>

#include <string>

namespace epochmeter::ingest::log {
namespace {

using Skip = bool (*)(std::string_view, size_t, size_t*);

// What `skip` takes from the text's second byte on; "-" when it refuses.
std::string Taken(Skip skip, const std::string& text) {
  const std::string padded = "=" + text;
  size_t end = 0;
  return skip(padded, 1, &end) ? padded.substr(1, end - 1) : "-";
}

struct Case {
  std::string text, taken;
};

TEST(NumberForms, ANumberEndsBehindItsExponent) {
  for (const auto& [text, taken] : std::initializer_list<Case>{{"12", "12"},
                                                               {"-0.25,", "-0.25"},
                                                               {"+3.", "+3"},
                                                               {"1e-05}", "1e-05"},
                                                               {"2.e+7 ", "2.e+7"},
                                                               {"5em", "5"},
                                                               {"7e-x", "7"},
                                                               {"1..3", "1"},
                                                               {"1.2.3", "1.2"},
                                                               {"x", ""}}) {
    EXPECT_EQ(text.substr(0, NumberEnd(text, 0)), taken) << text;
  }
}

TEST(NumberForms, StampsAreDatesWithOrWithoutAClock) {
  for (const auto& [text, taken] :
       std::initializer_list<Case>{{"2031-05-06 07:08:09,123 x", "2031-05-06 07:08:09,123"},
                                   {"2031-05-06T07:08:09Z", "2031-05-06T07:08:09"},
                                   {"05/06/2031 07:08:09", "05/06/2031 07:08:09"},
                                   {"2031.05.06 x", "2031.05.06"},
                                   {"2031-05/06", "-"},
                                   {"1/2", "-"},
                                   {"1.25", "-"}}) {
    EXPECT_EQ(Taken(SkipStamp, text), taken) << text;
  }
}

TEST(NumberForms, DurationsHaveColonsAndPerhapsDays) {
  for (const auto& [text, taken] :
       std::initializer_list<Case>{{"0:00:49", "0:00:49"},
                                   {"05:57,", "05:57"},
                                   {"2 days, 1:45:32", "2 days, 1:45:32"},
                                   {"1 day, 2:03:04.1234 x", "1 day, 2:03:04.1234"},
                                   {"2h3m ", "2h3m"},
                                   {"1m 5.5s", "1m 5.5s"},
                                   {"1d 02:01:00,", "1d 02:01:00"},
                                   {"2 hours 3 minutes", "2 hours 3 minutes"},
                                   {"0.5s 0.3s", "-"},
                                   {"5 it 3 s", "-"},
                                   {"2 days", "-"},
                                   {"3:", "-"},
                                   {"12", "-"}}) {
    EXPECT_EQ(Taken(SkipDuration, text), taken) << text;
  }
}

TEST(NumberForms, GroupsOfThreeDigitsAreOneNumber) {
  for (const auto& [text, taken] : std::initializer_list<Case>{{"1,234,567 x", "1,234,567"},
                                                               {"12,345", "12,345"},
                                                               {"1,23", "-"},
                                                               {"1234,567", "-"},
                                                               {"1,234,5", "1,234"},
                                                               {"1, 234", "-"}}) {
    EXPECT_EQ(Taken(SkipThousands, text), taken) << text;
  }
}

TEST(NumberForms, OfHowManyFollowsASlashOrOf) {
  const auto total = [](const std::string& text) -> std::string {
    size_t begin = 0, end = 0;
    return ReadTotal(text, 1, &begin, &end) ? text.substr(begin, end - begin) : "-";
  };
  EXPECT_EQ(total("3/10]"), "10");
  EXPECT_EQ(total("3 /  10"), "10");
  EXPECT_EQ(total("3 of 10"), "10");
  EXPECT_EQ(total("3 off 10"), "-");
  EXPECT_EQ(total("3/x"), "-");
  EXPECT_EQ(total("3 of 10th"), "-");
  EXPECT_EQ(total("3"), "-");
}

}  // namespace
}  // namespace epochmeter::ingest::log
