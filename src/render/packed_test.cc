// SPDX-License-Identifier: Apache-2.0
#include "render/packed.h"

#include <gtest/gtest.h>
#include <zlib.h>

namespace epochmeter::render {
namespace {

TEST(Base64, FollowsTheStandard) {
  EXPECT_EQ(Base64(""), "");
  EXPECT_EQ(Base64("f"), "Zg==");
  EXPECT_EQ(Base64("fo"), "Zm8=");
  EXPECT_EQ(Base64("foo"), "Zm9v");
  EXPECT_EQ(Base64("\xFF\xFE\xFD\xFC"), "//79/A==");
}

TEST(Gzip, GivesTheBytesBack) {
  std::string bytes;
  uint32_t state = 7;
  for (int i = 0; i < 700'000; ++i) {
    state = state * 1664525 + 1013904223;
    bytes += static_cast<char>(state >> 24);
  }
  for (const std::string& text : {std::string(), std::string("a"), bytes}) {
    std::string packed = Gzip(text).value();
    std::string unpacked(text.size() + 1, '\0');
    z_stream stream{};
    ASSERT_EQ(inflateInit2(&stream, 31), Z_OK);
    stream.next_in = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_in = static_cast<uInt>(packed.size());
    stream.next_out = reinterpret_cast<Bytef*>(unpacked.data());
    stream.avail_out = static_cast<uInt>(unpacked.size());
    EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
    unpacked.resize(stream.total_out);
    EXPECT_EQ(unpacked, text);
    inflateEnd(&stream);
  }
}

}  // namespace
}  // namespace epochmeter::render
