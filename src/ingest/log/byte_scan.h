// SPDX-License-Identifier: Apache-2.0
// Finds bytes of a kind in blocks of 64. Pure.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace epochmeter::ingest::log {

// One bit per byte of a block, the first byte lowest.
inline constexpr size_t kScanBlock = 64;

inline bool IsControlByte(unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; }

// Control bytes but tab.
inline uint64_t ControlMask(const char* block) {
  uint64_t mask = 0;
#if defined(__SSE2__)
  for (unsigned i = 0; i < 4; ++i) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 16 * i));
    const __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1f)), bytes);
    const __m128i text = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\t'));
    const __m128i deleted = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7f));
    const __m128i control = _mm_or_si128(_mm_andnot_si128(text, low), deleted);
    mask |= static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(control))) << (16 * i);
  }
#else
  for (unsigned i = 0; i < kScanBlock; ++i) {
    const auto c = static_cast<unsigned char>(block[i]);
    if (IsControlByte(c)) mask |= uint64_t{1} << i;
  }
#endif
  return mask;
}

// The control bytes of a text, in order.
class ControlScanner {
 public:
  ControlScanner(const char* begin, const char* end) : block_(begin), end_(end) { Load(); }

  // The first control byte at or after `at`, else the end. `at` never goes back.
  const char* Next(const char* at) {
    while (static_cast<size_t>(at - block_) >= kScanBlock) Step(at);
    uint64_t left = mask_ & (~uint64_t{0} << (at - block_));
    while (left == 0) {
      if (static_cast<size_t>(end_ - block_) <= kScanBlock) return end_;
      block_ += kScanBlock;
      Load();
      left = mask_;
    }
    return block_ + std::countr_zero(left);
  }

 private:
  void Step(const char* at) {
    block_ += static_cast<size_t>(at - block_) / kScanBlock * kScanBlock;
    Load();
  }
  void Load() {
    const auto size = static_cast<size_t>(end_ - block_);
    if (size >= kScanBlock) {
      mask_ = ControlMask(block_);
      return;
    }
    char rest[kScanBlock];
    std::memset(rest, ' ', sizeof rest);
    if (size > 0) std::memcpy(rest, block_, size);
    mask_ = ControlMask(rest);
  }

  const char* block_;
  const char* end_;
  uint64_t mask_ = 0;
};

// How many bytes at the begin are ASCII and no NUL.
inline size_t AsciiLength(std::string_view text) {
  size_t at = 0;
#if defined(__SSE2__)
  const auto load = [&](size_t i) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + at + i));
  };
  for (; at + kScanBlock <= text.size(); at += kScanBlock) {
    // As signed bytes, ASCII without NUL is above 0.
    const __m128i zero = _mm_setzero_si128();
    const __m128i front =
        _mm_and_si128(_mm_cmpgt_epi8(load(0), zero), _mm_cmpgt_epi8(load(16), zero));
    const __m128i back =
        _mm_and_si128(_mm_cmpgt_epi8(load(32), zero), _mm_cmpgt_epi8(load(48), zero));
    if (_mm_movemask_epi8(_mm_and_si128(front, back)) != 0xffff) break;
  }
#endif
  while (at < text.size() && static_cast<signed char>(text[at]) > 0) ++at;
  return at;
}

// The first quote or backslash from `at` on, else the end.
inline size_t FindQuote(std::string_view text, size_t at) {
#if defined(__SSE2__)
  for (; at + 16 <= text.size(); at += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + at));
    const int found = _mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
                                                     _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'))));
    if (found != 0) return at + static_cast<size_t>(std::countr_zero(static_cast<unsigned>(found)));
  }
#endif
  while (at < text.size() && text[at] != '"' && text[at] != '\\') ++at;
  return at;
}

// The first byte that is no NUL, else the end.
inline const char* SkipNuls(const char* at, const char* end) {
  for (; end - at >= 8; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    if (word != 0) break;
  }
  while (at != end && *at == '\0') ++at;
  return at;
}

}  // namespace epochmeter::ingest::log
