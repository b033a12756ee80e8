// SPDX-License-Identifier: Apache-2.0
#include "runfile/column_codec.h"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <memory>

#include "base/bytes.h"
#include "base/check.h"

namespace epochmeter::runfile {
namespace {

constexpr int kLevel = 3;  // level 9 gains 2 % and costs three times the CPU

// A part of its own costs a head of 3 bytes and perhaps a table; shorter ones join the next.
constexpr size_t kSmallestPart = 128;
constexpr size_t kBlockOverhead = 16;  // in the worst case

uint64_t ZigZagStep(int64_t from, int64_t to) {
  return base::ZigZag(
      static_cast<int64_t>(static_cast<uint64_t>(to) - static_cast<uint64_t>(from)));
}

struct FreeCompressor {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

// One a thread: making a context costs more than compressing a column.
ZSTD_CCtx* Compressor() {
  thread_local const std::unique_ptr<ZSTD_CCtx, FreeCompressor> kContext = [] {
    std::unique_ptr<ZSTD_CCtx, FreeCompressor> made(ZSTD_createCCtx());
    EPM_CHECK(made != nullptr);
    ZSTD_CCtx_setParameter(made.get(), ZSTD_c_compressionLevel, kLevel);
    ZSTD_CCtx_setParameter(made.get(), ZSTD_c_contentSizeFlag, 0);  // the caller keeps the size
    return made;
  }();
  return kContext.get();
}

struct FreeDecompressor {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

ZSTD_DCtx* Decompressor() {
  thread_local const std::unique_ptr<ZSTD_DCtx, FreeDecompressor> kContext(ZSTD_createDCtx());
  EPM_CHECK(kContext != nullptr);
  return kContext.get();
}

// Gives `word(0)` to `word(count - 1)` as byte planes behind a byte with their number.
template <typename Word>
std::string ToPlanes(size_t count, size_t planes, const Word& word) {
  std::string bytes(1 + count * planes, static_cast<char>(planes));
  char* const out = bytes.data() + 1;
  for (size_t i = 0; i < count; ++i) {
    uint64_t rest = word(i);
    for (size_t at = i; at < count * planes; at += count, rest >>= 8) {
      out[at] = static_cast<char>(rest);
    }
  }
  return bytes;
}

// Gives `take` each of the words in order.
template <size_t kPlanes, typename Take>
void FromPlanes(std::string_view bytes, size_t count, const Take& take) {
  const auto* in = reinterpret_cast<const uint8_t*>(bytes.data());
  for (size_t i = 0; i < count; ++i) {
    uint64_t word = 0;
    for (size_t plane = 0; plane < kPlanes; ++plane) {
      word |= static_cast<uint64_t>(in[plane * count + i]) << (8 * plane);
    }
    take(word);
  }
}

template <typename Take>
void FromPlanes(std::string_view bytes, size_t planes, size_t count, const Take& take) {
  switch (planes) {
    case 0:
      return FromPlanes<0>(bytes, count, take);
    case 1:
      return FromPlanes<1>(bytes, count, take);
    case 2:
      return FromPlanes<2>(bytes, count, take);
    case 3:
      return FromPlanes<3>(bytes, count, take);
    case 4:
      return FromPlanes<4>(bytes, count, take);
    case 5:
      return FromPlanes<5>(bytes, count, take);
    case 6:
      return FromPlanes<6>(bytes, count, take);
    case 7:
      return FromPlanes<7>(bytes, count, take);
    default:
      return FromPlanes<8>(bytes, count, take);
  }
}

EncodedColumn Packed(ColumnEncoding encoding, std::string planes, Packing packing) {
  if (packing == Packing::kPlanes) return {.encoding = encoding, .bytes = std::move(planes)};
  const std::string_view content = std::string_view(planes).substr(1);
  std::vector<size_t> ends;
  AddPlaneEnds(planes, 0, &ends);
  for (size_t& end : ends) --end;  // of the content
  return {.encoding = encoding, .bytes = planes.front() + CompressParts(content, ends)};
}

}  // namespace

std::string Compress(std::string_view bytes) { return CompressParts(bytes, {}); }

std::string CompressParts(std::string_view bytes, const std::vector<size_t>& ends) {
  ZSTD_CCtx* const context = Compressor();
  ZSTD_CCtx_reset(context, ZSTD_reset_session_only);
  ZSTD_CCtx_setPledgedSrcSize(context, bytes.size());
  std::string out(ZSTD_compressBound(bytes.size()) + ends.size() * kBlockOverhead, '\0');
  ZSTD_outBuffer to{out.data(), out.size(), 0};
  size_t begin = 0;
  const auto put = [&](size_t end, ZSTD_EndDirective directive) {
    ZSTD_inBuffer from{bytes.data() + begin, end - begin, 0};
    const size_t left = ZSTD_compressStream2(context, &to, &from, directive);
    EPM_CHECK(left == 0) << (ZSTD_isError(left) != 0 ? ZSTD_getErrorName(left) : "no room");
    begin = end;
  };
  for (const size_t end : ends) {
    const bool worth_it = end - begin >= kSmallestPart && bytes.size() - end >= kSmallestPart;
    if (end <= bytes.size() && worth_it) put(end, ZSTD_e_flush);
  }
  put(bytes.size(), ZSTD_e_end);
  out.resize(to.pos);
  return out;
}

bool Decompress(std::string_view compressed, size_t raw_size, std::string* bytes) {
  if (raw_size > kMaxSectionBytes) return false;
  // zstd expands by 2^15 at most or so; a larger claim is not worth its memory.
  if (raw_size / 65536 > compressed.size()) return false;
  bytes->resize(raw_size);
  const size_t size = ZSTD_decompressDCtx(Decompressor(), bytes->data(), raw_size,
                                          compressed.data(), compressed.size());
  return ZSTD_isError(size) == 0 && size == raw_size;
}

void AddPlaneEnds(std::string_view planes, size_t begin, std::vector<size_t>* ends) {
  const auto count = static_cast<size_t>(static_cast<uint8_t>(planes.front()));
  const size_t length = count > 0 ? (planes.size() - 1) / count : 0;
  for (size_t plane = 1; plane <= count; ++plane) ends->push_back(begin + 1 + plane * length);
}

EncodedColumn EncodeColumn(const std::vector<int64_t>& values, bool plain, Packing packing) {
  uint64_t all = 0;  // the bits that any of the differences has
  for (size_t i = 1; i < values.size(); ++i) all |= ZigZagStep(values[i - 1], values[i]);
  if (all == 0) return {};
  if (plain) {
    const auto word = [&values](size_t i) { return static_cast<uint64_t>(values[i]); };
    return Packed(ColumnEncoding::kPlain, ToPlanes(values.size(), 8, word), packing);
  }
  const auto planes = static_cast<size_t>(std::bit_width(all) + 7) / 8;
  const auto word = [&values](size_t i) { return ZigZagStep(values[i], values[i + 1]); };
  return Packed(ColumnEncoding::kDelta, ToPlanes(values.size() - 1, planes, word), packing);
}

bool DecodeColumn(ColumnEncoding encoding, std::string_view bytes, Packing packing, int64_t first,
                  size_t count, std::vector<int64_t>* values) {
  if (count == 0 || count > kMaxColumnValues) return false;
  if (encoding == ColumnEncoding::kConstant) {
    values->assign(count, first);
    return bytes.empty();
  }
  const bool plain = encoding == ColumnEncoding::kPlain;
  if (bytes.empty() || (!plain && encoding != ColumnEncoding::kDelta)) return false;
  const auto planes = static_cast<size_t>(static_cast<uint8_t>(bytes.front()));
  const size_t stored = plain ? count : count - 1;
  if (planes > 8 || (plain && planes != 8)) return false;
  bytes.remove_prefix(1);
  std::string raw;
  if (packing == Packing::kZstd) {
    if (!Decompress(bytes, planes * stored, &raw)) return false;
    bytes = raw;
  }
  if (bytes.size() != planes * stored) return false;
  values->resize(count);
  int64_t* to = values->data();
  if (plain) {
    FromPlanes<8>(bytes, stored, [&to](uint64_t word) { *to++ = static_cast<int64_t>(word); });
    return values->front() == first;
  }
  auto value = static_cast<uint64_t>(first);
  *to++ = first;
  FromPlanes(bytes, planes, stored, [&to, &value](uint64_t word) {
    value += static_cast<uint64_t>(base::UnZigZag(word));
    *to++ = static_cast<int64_t>(value);
  });
  return true;
}

}  // namespace epochmeter::runfile
