// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/text_decoder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace epochmeter::ingest::log {
namespace {

using std::string_literals::operator""s;

class Text : public TextSink {
 public:
  void OnText(std::string_view text) override { all += text; }
  std::string all;
};

std::string DecodeBy(std::string_view bytes, size_t step, DecoderCounts* counts) {
  Text text;
  TextDecoder decoder(text);
  for (size_t at = 0; at < bytes.size(); at += step) decoder.Feed(bytes.substr(at, step));
  decoder.Finish();
  *counts = decoder.counts();
  return text.all;
}

// The text, which must be the same however the bytes are cut.
std::string Decode(std::string_view bytes, DecoderCounts* counts = nullptr) {
  DecoderCounts whole_counts;
  const std::string whole = DecodeBy(bytes, bytes.size() + 1, &whole_counts);
  for (const size_t step : {1, 2, 3, 5, 7, 31, 32, 33, 64}) {
    DecoderCounts piece_counts;
    EXPECT_EQ(DecodeBy(bytes, step, &piece_counts), whole) << "in pieces of " << step;
    EXPECT_EQ(piece_counts.bad_bytes, whole_counts.bad_bytes) << "in pieces of " << step;
    EXPECT_EQ(piece_counts.gb18030, whole_counts.gb18030) << "in pieces of " << step;
  }
  if (counts != nullptr) *counts = whole_counts;
  return whole;
}

std::string Encode(const char* encoding, std::string text) {
  const iconv_t handle = iconv_open(encoding, "UTF-8");
  std::string out(text.size() * 4, '\0');
  char* in = text.data();
  char* to = out.data();
  size_t in_left = text.size();
  size_t to_left = out.size();
  EXPECT_EQ(iconv(handle, &in, &in_left, &to, &to_left), 0U);
  iconv_close(handle);
  out.resize(out.size() - to_left);
  return out;
}

TEST(TextDecoder, Utf8GoesThroughWithoutItsMark) {
  const std::string text = "step 1\n轮次 2 ▊▊▊| 50%\r𝛼=0.1\n";
  EXPECT_EQ(Decode(text), text);
  EXPECT_EQ(Decode("\xef\xbb\xbf" + text), text);
}

TEST(TextDecoder, Utf8IsGivenAsAViewIntoTheBytes) {
  class Views : public TextSink {
   public:
    void OnText(std::string_view text) override { views.push_back(text); }
    std::vector<std::string_view> views;
  };
  Views sink;
  TextDecoder decoder(sink);
  const std::string text = "step 1 ▊▊\nstep 2\n";
  decoder.Feed(text);
  ASSERT_EQ(sink.views.size(), 1U);
  EXPECT_EQ(sink.views[0].data(), text.data());
}

TEST(TextDecoder, ReadsUtf16WithAMarkInBothOrders) {
  const std::string text = "Epoch 1, loss 0.5\r\n第二轮 𝛼\n";
  EXPECT_EQ(Decode("\xff\xfe" + Encode("UTF-16LE", text)), text);
  EXPECT_EQ(Decode("\xfe\xff" + Encode("UTF-16BE", text)), text);
}

TEST(TextDecoder, KnowsUtf16WithoutAMarkByItsNuls) {
  const std::string text = "Epoch 1, loss 0.5\r\n第二轮 0.4\r\n";
  EXPECT_EQ(Decode(Encode("UTF-16LE", text)), text);
  EXPECT_EQ(Decode(Encode("UTF-16BE", text)), text);
}

TEST(TextDecoder, TheEncodingMayChangeWhereAShellAppended) {
  const std::string first = "begin in UTF-8 ▊\n";
  const std::string second = "then as wide characters: 第二轮 0.4\r\n短\r\n";
  const std::string third = "轮次 and UTF-8 again, for more than one line\nend\n";
  EXPECT_EQ(Decode(first + Encode("UTF-16LE", second) + third), first + second + third);
}

TEST(TextDecoder, ReadsGbkLinesBetweenUtf8Lines) {
  const std::string chinese = "轮次：3，损失：0.25，联通\n";
  DecoderCounts counts;
  EXPECT_EQ(
      Decode("plain\n" + Encode("GB18030", chinese) + "进度 ▊ 5%\n" + Encode("GB18030", chinese),
             &counts),
      "plain\n" + chinese + "进度 ▊ 5%\n" + chinese);
  EXPECT_EQ(counts.gb18030, 2U);
  EXPECT_EQ(counts.bad_bytes, 0U);
}

TEST(TextDecoder, ChineseThatLooksLikeValidUtf8IsReadLikeItsFile) {
  const std::string text = "损失 0.1\n联通\n";
  EXPECT_EQ(Decode(Encode("GBK", text)), text);
}

TEST(TextDecoder, AWordOfGbkAloneIsRead) {
  for (const char* word :
       {"准确", "准确率", "学习", "学习率", "损失", "轮", "训练集", "验证精度"}) {
    const std::string text = "step 1 loss 0.5\n" + std::string(word) + ": 0.5\nstep 2 loss 0.4\n";
    DecoderCounts counts;
    EXPECT_EQ(Decode(Encode("GBK", text), &counts), text);
    EXPECT_EQ(counts.gb18030, 1U) << word;
    EXPECT_EQ(counts.bad_bytes, 0U) << word;
    EXPECT_EQ(Decode(text), text);
    EXPECT_EQ(Decode("进度\n" + text), "进度\n" + text);
  }
}

TEST(TextDecoder, WordsOfOtherAlphabetsAreNotTakenForChinese) {
  for (const char* line :
       {"эпоха 1 потери 0,5 ёж Ёлка", "жәпҭаӡԥшь аԥсуа", "απώλεια Δμ σ² θ̂ x̄ α²β³",
        "Größe ändern, coût élevé, ñandú", "příliš žluťoučký kůň", "şğüöçı İstanbul", "שלום עולם",
        "مرحبا بالعالم", "τ±σ 10 µs 5 °C"}) {
    DecoderCounts counts;
    EXPECT_EQ(Decode(std::string(line) + "\n", &counts), std::string(line) + "\n");
    EXPECT_EQ(counts.gb18030, 0U) << line;
    // Torn in the midst of a character.
    std::string torn = line;
    torn.erase(torn.find_first_of("\xc3\xc4\xc5\xce\xcf\xd0\xd1\xd7\xd9"), 1);
    Decode(torn + "\n", &counts);
    EXPECT_EQ(counts.gb18030, 0U) << line;
  }
}

TEST(TextDecoder, ReadsShiftJisByItsSyllables) {
  const std::string text = "エポック 1 を終わりました\n損失は 0.5 です\n";
  EXPECT_EQ(Decode(Encode("CP932", text)), text);
}

TEST(TextDecoder, TornCharactersAreReplacedAndCounted) {
  DecoderCounts counts;
  EXPECT_EQ(Decode("进度 ▊▊\xe2\x96\nloss 0.5\xe5\xad\n", &counts),
            "进度 ▊▊\xef\xbf\xbd\xef\xbf\xbd\nloss 0.5\xef\xbf\xbd\xef\xbf\xbd\n");
  EXPECT_EQ(counts.bad_bytes, 4U);
}

TEST(TextDecoder, ATornChineseLineKeepsItsText) {
  std::string line = Encode("GBK", "第一轮结束，损失");
  line.pop_back();
  EXPECT_EQ(Decode(line + "\n" + line + "\n"),
            "第一轮结束，损\xef\xbf\xbd\n第一轮结束，损\xef\xbf\xbd\n");
}

TEST(TextDecoder, WesternSignsAreNotTakenForChinese) {
  EXPECT_EQ(Decode("12.5 \xb5s \xb1 0.2, 40 \xb0"
                   "C\n"),
            "12.5 \xef\xbf\xbds \xef\xbf\xbd 0.2, 40 \xef\xbf\xbd"
            "C\n");
}

TEST(TextDecoder, NulsThatAreNoUtf16AreGivenOn) {
  const std::string text = "a\0b\0\0c\n\0\0\0\0step 1\n"s;
  EXPECT_EQ(Decode(text), text);
}

TEST(TextDecoder, HalfOfACharacterAtTheEndIsCounted) {
  DecoderCounts counts;
  EXPECT_EQ(Decode("\xff\xfe"
                   "a\0b\0c"s,
                   &counts),
            "ab\xef\xbf\xbd");
  EXPECT_EQ(counts.bad_bytes, 1U);
  EXPECT_EQ(Decode("\xff\xfe\x3d\xd8\x0a\0"s, &counts), "\xef\xbf\xbd\n");
}

TEST(TextDecoder, ALongLineIsNotHeldToItsEnd) {
  Text text;
  TextDecoder decoder(text);
  std::string bytes;
  for (int i = 0; i < 100000; ++i) bytes += "▊ ";
  for (size_t at = 0; at < bytes.size(); at += 1000) {
    decoder.Feed(std::string_view(bytes).substr(at, 1000));
    ASSERT_LT(at, text.all.size() + 70000);
  }
  decoder.Finish();
  EXPECT_EQ(text.all, bytes);
  EXPECT_EQ(decoder.counts().bad_bytes, 0U);
}

}  // namespace
}  // namespace epochmeter::ingest::log
