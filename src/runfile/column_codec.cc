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

std::string ToPlanes(const std::vector<uint64_t>& words, size_t planes) {
  std::string bytes(words.size() * planes, '\0');
  for (size_t plane = 0; plane < planes; ++plane) {
    char* out = bytes.data() + plane * words.size();
    for (size_t i = 0; i < words.size(); ++i) out[i] = static_cast<char>(words[i] >> (8 * plane));
  }
  return bytes;
}

std::vector<uint64_t> FromPlanes(std::string_view bytes, size_t planes, size_t count) {
  std::vector<uint64_t> words(count, 0);
  for (size_t plane = 0; plane < planes; ++plane) {
    const char* in = bytes.data() + plane * count;
    for (size_t i = 0; i < count; ++i) {
      words[i] |= static_cast<uint64_t>(static_cast<uint8_t>(in[i])) << (8 * plane);
    }
  }
  return words;
}

std::string Stored(const std::vector<uint64_t>& words, size_t planes, Packing packing) {
  const std::string bytes = ToPlanes(words, planes);
  return static_cast<char>(planes) + (packing == Packing::kZstd ? Compress(bytes) : bytes);
}

}  // namespace

std::string Compress(std::string_view bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  const size_t size =
      ZSTD_compress2(Compressor(), out.data(), out.size(), bytes.data(), bytes.size());
  EPM_CHECK(ZSTD_isError(size) == 0) << ZSTD_getErrorName(size);
  out.resize(size);
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

EncodedColumn EncodeColumn(const std::vector<int64_t>& values, bool plain, Packing packing) {
  const bool constant = std::all_of(values.begin(), values.end(),
                                    [&values](int64_t v) { return v == values.front(); });
  if (constant) return {};
  std::vector<uint64_t> words(values.begin(), values.end());
  if (plain) return {.encoding = ColumnEncoding::kPlain, .bytes = Stored(words, 8, packing)};
  uint64_t all = 0;
  for (size_t i = words.size() - 1; i > 0; --i) {
    words[i] = base::ZigZag(static_cast<int64_t>(words[i] - words[i - 1]));
    all |= words[i];
  }
  words.erase(words.begin());
  const auto planes = static_cast<size_t>(std::bit_width(all) + 7) / 8;
  return {.encoding = ColumnEncoding::kDelta, .bytes = Stored(words, planes, packing)};
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
  const std::vector<uint64_t> words = FromPlanes(bytes, planes, stored);
  if (plain) {
    values->assign(words.begin(), words.end());
    return values->front() == first;
  }
  values->resize(count);
  auto value = static_cast<uint64_t>(first);
  (*values)[0] = first;
  for (size_t i = 0; i < stored; ++i) {
    value += static_cast<uint64_t>(base::UnZigZag(words[i]));
    (*values)[i + 1] = static_cast<int64_t>(value);
  }
  return true;
}

}  // namespace epochmeter::runfile
