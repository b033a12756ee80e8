// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/segment_splitter.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace epochmeter::ingest::log {
namespace {

using std::string_literals::operator""s;

struct Piece {
  std::string text;
  uint64_t line = 0;
  bool redrawn = false;
  bool cut = false;
  bool operator==(const Piece&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Piece& piece) {
  out << piece.line << (piece.redrawn ? " redrawn" : "") << (piece.cut ? " cut" : "") << " \"";
  return out << piece.text.substr(0, 200) << "\" (" << piece.text.size() << ")";
}

class Pieces : public SegmentSink {
 public:
  void OnSegment(const Segment& segment) override {
    all.push_back({std::string(segment.text), segment.line, segment.redrawn, segment.cut});
  }
  std::vector<Piece> all;
};

std::vector<Piece> SplitBy(std::string_view bytes, size_t step) {
  Pieces pieces;
  SegmentSplitter splitter(pieces);
  for (size_t at = 0; at < bytes.size(); at += step) splitter.Feed(bytes.substr(at, step));
  splitter.Finish();
  return pieces.all;
}

// The segments of a text, which must be the same however it is cut.
std::vector<Piece> Split(std::string_view bytes) {
  std::vector<Piece> whole = SplitBy(bytes, bytes.size() + 1);
  for (const size_t step : {1, 2, 3, 5, 7, 63, 64, 65}) {
    EXPECT_EQ(SplitBy(bytes, step), whole) << "in pieces of " << step;
  }
  return whole;
}

using Expected = std::vector<Piece>;

TEST(SegmentSplitter, OnlyLineFeedsCountAsLines) {
  EXPECT_EQ(Split("one\ntwo\r\n\n\rthree\tx"), (Expected{{"one", 1}, {"two", 2}, {"three\tx", 4}}));
}

TEST(SegmentSplitter, EachStateOfABarIsASegmentOfItsLine) {
  EXPECT_EQ(
      Split("\r 10%|#   |\r 20%|##  |\r\r 100%|####|\nnext\n"),
      (Expected{
          {" 10%|#   |", 1, true}, {" 20%|##  |", 1, true}, {" 100%|####|", 1}, {"next", 2}}));
}

TEST(SegmentSplitter, SeveralReturnsBeforeALineFeedAreALineEnd) {
  EXPECT_EQ(Split("a\r\r\nb\r\n"), (Expected{{"a", 1}, {"b", 2}}));
}

TEST(SegmentSplitter, AReturnAtTheEndOverdrawsItsText) {
  EXPECT_EQ(Split("50%\r"), (Expected{{"50%", 1, true}}));
}

TEST(SegmentSplitter, BackspacesToTheBeginEndASegment) {
  EXPECT_EQ(Split("1/3 [=>.]\b\b\b\b\b\b\b\b\b\b\b\b\r2/3 [==>]\b\b\b\b\b\b\b\b\b\n"),
            (Expected{{"1/3 [=>.]", 1, true}, {"2/3 [==>]", 1, true}}));
}

TEST(SegmentSplitter, AShorterRunOfBackspacesKeepsWhatStands) {
  EXPECT_EQ(Split("done:  8%\b\b\b 9%\b\b\b10%\n"),
            (Expected{{"done:  8%", 1, true}, {"done:  9%", 1, true}, {"done: 10%", 1}}));
}

TEST(SegmentSplitter, ABackspaceGoesBackOneCharacterNotOneByte) {
  EXPECT_EQ(Split("進む 1\b2\b\b\b\b\b\bx\n"),
            (Expected{{"進む 1", 1, true}, {"進む 2", 1, true}, {"x", 1}}));
}

TEST(SegmentSplitter, ColoursTitlesAndModesAreTakenOut) {
  EXPECT_EQ(Split("\x1b[1;32mstep\x1b[0m \x1b[38;2;1;2;3m5\x1b[m\x1b]0;a title\a!\x1b]8;;url\x1b\\"
                  "\x1b[?25l\x1b(B\x1b=.\n"),
            (Expected{{"step 5!.", 1}}));
}

TEST(SegmentSplitter, CursorMovementsEndASegment) {
  EXPECT_EQ(
      Split("bar 1\x1b[A\nbar 2\x1b[1F\x1b[2Kbar 3\x1b[2K\x1b[1Gbar 4\x1b[H"),
      (Expected{{"bar 1", 1, true}, {"bar 2", 2, true}, {"bar 3", 2, true}, {"bar 4", 2, true}}));
}

TEST(SegmentSplitter, ErasingTheRestOfALineChangesNothing) {
  EXPECT_EQ(Split("\r\x1b[K 1/5 8.1G\r\x1b[K 2/5 8.2G\x1b[K\n"),
            (Expected{{" 1/5 8.1G", 1, true}, {" 2/5 8.2G", 1}}));
}

TEST(SegmentSplitter, AColumnIsGoneBackToOrFilledUpTo) {
  EXPECT_EQ(
      Split("load 10%\x1b[6G20%\x1b[3D30%\nab\x1b[5Gcd\x1b[2Cef\n"),
      (Expected{{"load 10%", 1, true}, {"load 20%", 1, true}, {"load 30%", 1}, {"ab  cd  ef", 2}}));
}

TEST(SegmentSplitter, ABrokenSequenceEndsAtItsLine) {
  EXPECT_EQ(Split("a\x1b[12\nb\x1b]0;no end\nc\x1b\n"), (Expected{{"a", 1}, {"b", 2}, {"c", 3}}));
}

TEST(SegmentSplitter, OtherControlBytesAreDroppedAndCounted) {
  const std::string bytes =
      "a\0\0b\x01\x7f"
      "c\n"s;
  EXPECT_EQ(Split(bytes), (Expected{{"abc", 1}}));
  Pieces pieces;
  SegmentSplitter splitter(pieces);
  splitter.Feed(bytes);
  EXPECT_EQ(splitter.bad_bytes(), 4U);
  EXPECT_EQ(splitter.lines(), 1U);
}

TEST(SegmentSplitter, AFileOfNulsHasNoSegment) {
  Pieces pieces;
  SegmentSplitter splitter(pieces);
  const std::string nuls(1 << 20, '\0');
  for (int i = 0; i < 64; ++i) splitter.Feed(nuls);
  splitter.Finish();
  EXPECT_TRUE(pieces.all.empty());
  EXPECT_EQ(splitter.bad_bytes(), uint64_t{64} << 20);
}

TEST(SegmentSplitter, ALineBeyondTheLimitIsCutAtACharacterAndCounted) {
  std::string text = "x";
  while (text.size() <= kMostSegmentBytes + 9) text += "é";
  for (const size_t step : {size_t{1000}, size_t{65536}, 4 * kMostSegmentBytes}) {
    Pieces pieces;
    SegmentSplitter splitter(pieces);
    const std::string bytes = text + "\rshort\n" + text + "\b\b\b" + text + "\nlast";
    for (size_t at = 0; at < bytes.size(); at += step) splitter.Feed(bytes.substr(at, step));
    splitter.Finish();
    const std::string kept = text.substr(0, kMostSegmentBytes - 1);
    EXPECT_EQ(pieces.all, (Expected{{kept, 1, true, true},
                                    {"short", 1},
                                    {kept, 2, true, true},
                                    {kept, 2, false, true},
                                    {"last", 3}}));
    EXPECT_EQ(splitter.cut_lines(), 3U);
  }
}

TEST(SegmentSplitter, TextWithoutControlBytesIsNotCopied) {
  class Views : public SegmentSink {
   public:
    void OnSegment(const Segment& segment) override { views.push_back(segment.text); }
    std::vector<std::string_view> views;
  };
  Views sink;
  SegmentSplitter splitter(sink);
  const std::string text = "first line\nbar 1\rbar 2\b\b\b\b\b\bbar 3\r\nlast\n";
  splitter.Feed(text);
  ASSERT_EQ(sink.views.size(), 5U);
  for (const std::string_view view : sink.views) {
    EXPECT_TRUE(view.data() >= text.data() && view.data() < text.data() + text.size()) << view;
  }
}

TEST(SegmentSplitter, GoesOnAfterFinish) {
  Pieces pieces;
  SegmentSplitter splitter(pieces);
  splitter.Feed("half");
  splitter.Finish();
  splitter.Feed(" a line\nnext\n");
  EXPECT_EQ(pieces.all, (Expected{{"half", 1}, {" a line", 1}, {"next", 2}}));
}

}  // namespace
}  // namespace epochmeter::ingest::log
