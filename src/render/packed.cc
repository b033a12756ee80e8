// SPDX-License-Identifier: Apache-2.0
#include "render/packed.h"

#include <zlib.h>

#include <cstdint>

#include "base/check.h"

namespace epochmeter::render {

base::Result<std::string> Gzip(std::string_view bytes, bool quick) {
  constexpr int kGzipWindow = 15 + 16;  // zlib's word for a gzip header
  constexpr int kMemoryLevel = 8;
  z_stream stream{};
  if (deflateInit2(&stream, quick ? Z_BEST_SPEED : Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow,
                   kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK) {
    return base::Error{.what = "cannot compress the page",
                       .where = "zlib",
                       .why = "out of memory",
                       .what_to_do = ""};
  }
  std::string packed;
  size_t taken = 0;
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    // zlib counts in 32 bits.
    constexpr size_t kMostIn = size_t{1} << 30;
    constexpr size_t kOut = size_t{1} << 18;
    if (stream.avail_in == 0 && taken < bytes.size()) {
      const std::string_view piece = bytes.substr(taken, kMostIn);
      // zlib reads only. NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast)
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
      stream.avail_in = static_cast<uInt>(piece.size());
      taken += piece.size();
    }
    const size_t before = packed.size();
    packed.resize(before + kOut);
    stream.next_out = reinterpret_cast<Bytef*>(packed.data() + before);
    stream.avail_out = static_cast<uInt>(kOut);
    state = deflate(&stream, taken == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
    EPM_CHECK(state == Z_OK || state == Z_STREAM_END || state == Z_BUF_ERROR) << state;
    packed.resize(packed.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return packed;
}

std::string Base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t j = 0; j < 3; ++j) {
      bits = bits << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (size_t j = 0; j < 4; ++j) {
      text += j <= count ? kDigits[bits >> (18 - 6 * j) & 63] : '=';
    }
  }
  return text;
}

}  // namespace epochmeter::render
