// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/unpacker.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>

namespace epochmeter::ingest::log {
namespace {

std::string Text() {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "step " + std::to_string(i * i) + "\n";
  return text;
}

std::string Gzip(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(::deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(::deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  return packed;
}

std::string Zstd(const std::string& text) {
  ZSTD_CCtx* context = ::ZSTD_createCCtx();
  ::ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  std::string packed(::ZSTD_compressBound(text.size()), '\0');
  packed.resize(::ZSTD_compress2(context, packed.data(), packed.size(), text.data(), text.size()));
  ::ZSTD_freeCCtx(context);
  return packed;
}

struct Unpacked {
  std::string text, problem;
};

Unpacked Unpack(const std::string& bytes, size_t piece) {
  Unpacked unpacked;
  Unpacker unpacker([&unpacked](std::string_view text) { unpacked.text += text; });
  for (size_t at = 0; at < bytes.size(); at += piece) {
    unpacker.Feed(std::string_view(bytes).substr(at, piece));
  }
  unpacked.problem = unpacker.Finish();
  return unpacked;
}

TEST(Unpacker, GivesTheTextHoweverItIsPackedAndCut) {
  const std::string text = Text();
  for (const std::string& bytes :
       {text, Gzip(text), Zstd(text), Gzip(text.substr(0, 999)) + Gzip(text.substr(999)),
        Zstd(text.substr(0, 999)) + Zstd(text.substr(999))}) {
    for (const size_t piece : {size_t{1}, size_t{3}, size_t{4096}, bytes.size()}) {
      const Unpacked unpacked = Unpack(bytes, piece);
      EXPECT_EQ(unpacked.text, text) << piece;
      EXPECT_EQ(unpacked.problem, "");
    }
  }
}

TEST(Unpacker, GivesWhatIsTooShortToBePacked) {
  EXPECT_EQ(Unpack("a\n", 1).text, "a\n");
  EXPECT_EQ(Unpack("\x1f\x8b", 1).text, "\x1f\x8b");
  EXPECT_EQ(Unpack("(a)", 1).text, "(a)");
  EXPECT_EQ(Unpack("", 1).text, "");
}

TEST(Unpacker, KeepsWhatStandsBeforeATearOrDamage) {
  const std::string text = Text();
  for (std::string packed : {Gzip(text), Zstd(text)}) {
    const Unpacked torn = Unpack(packed.substr(0, packed.size() / 2), 4096);
    EXPECT_NE(torn.problem.find("ends too early"), std::string::npos);
    EXPECT_EQ(torn.text, text.substr(0, torn.text.size()));
    for (size_t i = packed.size() / 2; i < packed.size() / 2 + 64; ++i) packed[i] = '\xff';
    const Unpacked damaged = Unpack(packed, 4096);
    EXPECT_NE(damaged.problem, "");
  }
  EXPECT_GT(Unpack(Gzip(text).substr(0, 30'000), 4096).text.size(), 1000u);
}

TEST(Unpacker, SaysThatSomethingElseFollows) {
  const std::string text = Text();
  const Unpacked mixed = Unpack(Gzip(text) + "plain text\n", 4096);
  EXPECT_EQ(mixed.text, text);
  EXPECT_NE(mixed.problem.find("left out"), std::string::npos);
  const Unpacked padded = Unpack(Gzip(text) + std::string(512, '\0'), 4096);
  EXPECT_EQ(padded.text, text);
  EXPECT_EQ(padded.problem, "");
}

TEST(Unpacker, DoesNotHoldWhatGrowsFromLittle) {
  const std::string bomb = Gzip(std::string(64 << 20, '\0'));
  EXPECT_LT(bomb.size(), size_t{100'000});
  size_t largest = 0, sum = 0;
  Unpacker unpacker([&](std::string_view text) {
    largest = std::max(largest, text.size());
    sum += text.size();
  });
  unpacker.Feed(bomb);
  EXPECT_EQ(sum, size_t{64} << 20);
  EXPECT_LE(largest, size_t{1} << 18);
}

}  // namespace
}  // namespace epochmeter::ingest::log
