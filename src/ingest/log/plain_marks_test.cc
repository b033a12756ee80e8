// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/plain_marks.h"

#include <gtest/gtest.h>

namespace epochmeter::ingest::log {
namespace {

struct Case {
  std::string_view text, plain;
};

TEST(PlainMarks, WidePunctuationBecomesAsciiAndKeepsItsBytes) {
  const Case cases[] = {{"损失：0.5，轮", "损失:  0.5,  轮"},
                        {"【训练】", "[  训练]  "},
                        {"（1）＝2；", "(  1)  =  2;  "},
                        {"a│b┃c", "a|  b|  c"},
                        {"a、b。", "a,  b;  "},
                        {"a\u3000b", "a   b"}};
  for (const auto& [text, plain] : cases) EXPECT_EQ(PlainMarks(text), plain) << text;
}

TEST(PlainMarks, GlyphsAndPicturesBecomeSpaces) {
  EXPECT_EQ(PlainMarks("5%|█▌ | 1"), "5%|       | 1");
  EXPECT_EQ(PlainMarks("🚀 loss"), "     loss");
  EXPECT_EQ(PlainMarks("a → b"), "a     b");
}

TEST(PlainMarks, LettersAndTornCharactersStay) {
  EXPECT_EQ(PlainMarks("größe 精度 loss"), "größe 精度 loss");
  EXPECT_EQ(PlainMarks("a\xE2\x94"), "a\xE2\x94");
  EXPECT_EQ(PlainMarks(""), "");
}

}  // namespace
}  // namespace epochmeter::ingest::log
