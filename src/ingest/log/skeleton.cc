// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/skeleton.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace epochmeter::ingest::log {
namespace {

constexpr size_t kBlock = 64;

// Into functions for one processor, so that they use what it has.
#define EPM_INLINE __attribute__((always_inline)) inline

// One bit a byte of a block.
struct Classes {
  uint64_t digit = 0, point = 0, exponent = 0, sign = 0, space = 0, word = 0;
};

// What the processor can do. Each has the classes of a block.
struct Portable {
  static Classes Classify(const char* block) {
    Classes classes;
    for (size_t i = 0; i < kBlock; ++i) {
      const auto byte = static_cast<unsigned char>(block[i]);
      const unsigned lower = byte | 0x20U;
      const uint64_t bit = uint64_t{1} << i;
      if (byte >= '0' && byte <= '9') classes.digit |= bit;
      if (byte == '.') classes.point |= bit;
      if (lower == 'e') classes.exponent |= bit;
      if (byte == '-' || byte == '+') classes.sign |= bit;
      if (byte == ' ') classes.space |= bit;
      if ((lower >= 'a' && lower <= 'z') || byte == '_' || byte == '@') classes.word |= bit;
    }
    return classes;
  }
};

#ifdef __SSE2__
struct Sse2 {
  // Bytes of `low` to `low + count - 1`.
  static __m128i InRange(__m128i bytes, char low, char count) {
    const __m128i shifted = _mm_sub_epi8(bytes, _mm_set1_epi8(low));
    return _mm_cmpeq_epi8(_mm_min_epu8(shifted, _mm_set1_epi8(static_cast<char>(count - 1))),
                          shifted);
  }

  static Classes Classify(const char* block) {
    Classes classes;
    for (int at = 0; at < static_cast<int>(kBlock); at += 16) {
      const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + at));
      const __m128i lower = _mm_or_si128(text, _mm_set1_epi8(0x20));
      const auto add = [at](uint64_t* mask, __m128i matches) {
        *mask |= static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(matches))) << at;
      };
      const auto equal = [&text](char byte) { return _mm_cmpeq_epi8(text, _mm_set1_epi8(byte)); };
      add(&classes.digit, InRange(text, '0', 10));
      add(&classes.point, equal('.'));
      add(&classes.exponent, _mm_cmpeq_epi8(lower, _mm_set1_epi8('e')));
      add(&classes.sign, _mm_or_si128(equal('-'), equal('+')));
      add(&classes.space, equal(' '));
      const __m128i letters = InRange(lower, 'a', 26);
      add(&classes.word, _mm_or_si128(letters, _mm_or_si128(equal('_'), equal('@'))));
    }
    return classes;
  }
};
#endif

#ifdef __x86_64__
#define EPM_AVX2 __attribute__((target("avx2,bmi,bmi2")))
struct Avx2 {
  EPM_AVX2 static __m256i Equal(__m256i bytes, char byte) {
    return _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte));
  }
  EPM_AVX2 static __m256i InRange(__m256i bytes, char low, char count) {
    const __m256i shifted = _mm256_sub_epi8(bytes, _mm256_set1_epi8(low));
    const __m256i most = _mm256_set1_epi8(static_cast<char>(count - 1));
    return _mm256_cmpeq_epi8(_mm256_min_epu8(shifted, most), shifted);
  }
  EPM_AVX2 static uint64_t Mask(__m256i matches, int at) {
    return static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_epi8(matches))) << at;
  }

  EPM_AVX2 static Classes Classify(const char* block) {
    Classes classes;
    for (int at = 0; at < static_cast<int>(kBlock); at += 32) {
      const __m256i text = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block + at));
      const __m256i lower = _mm256_or_si256(text, _mm256_set1_epi8(0x20));
      classes.digit |= Mask(InRange(text, '0', 10), at);
      classes.point |= Mask(Equal(text, '.'), at);
      classes.exponent |= Mask(Equal(lower, 'e'), at);
      classes.sign |= Mask(_mm256_or_si256(Equal(text, '-'), Equal(text, '+')), at);
      classes.space |= Mask(Equal(text, ' '), at);
      const __m256i marks = _mm256_or_si256(Equal(text, '_'), Equal(text, '@'));
      classes.word |= Mask(_mm256_or_si256(InRange(lower, 'a', 26), marks), at);
    }
    return classes;
  }
};

#define EPM_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi,bmi2,popcnt")))
EPM_AVX512 inline Classes ClassifyAvx512(__m512i text) {
  const __m512i lower = _mm512_or_si512(text, _mm512_set1_epi8(0x20));
  const __m512i digit = _mm512_sub_epi8(text, _mm512_set1_epi8('0'));
  const __m512i letter = _mm512_sub_epi8(lower, _mm512_set1_epi8('a'));
  Classes classes;
  classes.digit = _mm512_cmplt_epu8_mask(digit, _mm512_set1_epi8(10));
  classes.point = _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8('.'));
  classes.exponent = _mm512_cmpeq_epi8_mask(lower, _mm512_set1_epi8('e'));
  classes.sign = _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8('-')) |
                 _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8('+'));
  classes.space = _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8(' '));
  classes.word = _mm512_cmplt_epu8_mask(letter, _mm512_set1_epi8(26)) |
                 _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8('_')) |
                 _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8('@'));
  return classes;
}
#endif

EPM_INLINE uint64_t Mix(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

EPM_INLINE uint64_t Load(const char* bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

constexpr uint64_t kSecretA = 0x9E37'79B9'7F4A'7C15, kSecretB = 0xD1B5'4A32'D192'ED03;

constexpr int kCopy = 16;          // bytes that are moved or hashed at once
constexpr int kKept = 4 * kBlock;  // are collected, then hashed
constexpr char kNumberMark = 1;    // no text has it

// What is kept of a line, its text with a mark for each number, is collected here and hashed in
// pieces.
using KeptText = std::array<char, kKept + 2 * kBlock + 2 * kCopy>;

EPM_INLINE uint64_t HashPiece(uint64_t hash, const char* at) {
  return Mix(hash ^ Load(at), kSecretA ^ Load(at + sizeof(uint64_t)));
}

// The whole pieces; what is left is moved to the begin. Returns its end.
EPM_INLINE char* HashWhole(uint64_t* hash, char* begin, const char* end) {
  const char* piece = begin;
  for (; end - piece >= kCopy; piece += kCopy) *hash = HashPiece(*hash, piece);
  std::memmove(begin, piece, kCopy);
  return begin + (end - piece);
}

EPM_INLINE uint64_t HashRest(uint64_t hash, const char* begin, char* end) {
  std::memset(end, 0, kCopy);
  for (const char* piece = begin; piece < end; piece += kCopy) hash = HashPiece(hash, piece);
  return Mix(hash ^ kSecretB, kSecretA ^ static_cast<uint64_t>((end - begin) % kCopy));
}

// What the block before says about the first byte of the next one.
struct Carry {
  bool digit = false, glued = false, number = false, word = false, space = false, exponent = false;
};

struct BlockMasks {
  uint64_t number = 0;   // belongs to a number
  uint64_t dropped = 0;  // number, or a space behind a space
};

// `last` is the last valid bit; bits above are 0 in all classes.
EPM_INLINE BlockMasks Resolve(const Classes& of, Carry* carry) {
  const auto behind = [](uint64_t mask, bool first) {
    return mask << 1 | static_cast<uint64_t>(first);
  };
  // Digits of a word: a run of digits whose first one stands behind a word's character.
  const uint64_t starts = of.digit &
                          (behind(of.word, carry->word) | static_cast<uint64_t>(carry->glued)) &
                          ~behind(of.digit, carry->digit && !carry->glued);
  const uint64_t glued = of.digit & ~(of.digit + starts);
  const uint64_t digit = of.digit & ~glued;
  // A point next to a digit, an exponent between digits, a sign in front of a number.
  const uint64_t point = of.point & (behind(digit, carry->digit && !carry->glued) | digit >> 1);
  const uint64_t numeric = digit | point;
  const uint64_t before = behind(numeric, carry->number);
  const uint64_t exponent =
      of.exponent & before & (of.digit >> 1 | ((of.sign & (of.digit >> 1)) >> 1));
  const uint64_t after_exponent = behind(exponent, carry->exponent);
  // The exponent's digits stand behind a letter, or behind its sign.
  const uint64_t exponent_sign = of.sign & after_exponent;
  const uint64_t exponent_starts = of.digit & (after_exponent | exponent_sign << 1);
  const uint64_t exponent_digits = of.digit & ~(of.digit + exponent_starts);
  const uint64_t free_sign = of.sign & (digit >> 1 | (point & (digit >> 1)) >> 1) &
                             ~(behind(of.word | of.digit, carry->word || carry->digit));
  BlockMasks masks;
  masks.number = numeric | exponent | exponent_sign | exponent_digits | free_sign;
  masks.dropped = masks.number | (of.space & behind(of.space, carry->space));
  const auto top = [](uint64_t mask) { return (mask >> 63) != 0; };
  *carry = {.digit = top(of.digit),
            .glued = top(glued & ~exponent_digits),
            .number = top(masks.number),
            .word = top(of.word & ~exponent),
            .space = top(of.space),
            .exponent = top(exponent | exponent_sign)};
  return masks;
}

// How many are worked on without a look whether there are as many: a branch that is guessed wrong
// costs more.
constexpr int kAtOnce = 4;

EPM_INLINE uint32_t AddNumbers(uint64_t starts, uint32_t at, uint32_t numbers, Skeleton* skeleton) {
  const auto count = static_cast<uint32_t>(std::popcount(starts));
  if (numbers + count + kAtOnce > Skeleton::kMostNumbers) {
    for (; starts != 0 && numbers < Skeleton::kMostNumbers; starts &= starts - 1) {
      skeleton->begin[numbers++] = at + static_cast<uint32_t>(std::countr_zero(starts));
    }
    return numbers;
  }
  uint32_t* out = skeleton->begin.data() + numbers;
  while (starts != 0) {
    for (int i = 0; i < kAtOnce; ++i, starts &= starts - 1) {
      *out++ = at + static_cast<uint32_t>(std::countr_zero(starts));
    }
  }
  return numbers + count;
}

// Stretches of a block that are kept; a mark stands before one behind a number, as something else
// is kept there or the line ends. Reads up to kCopy bytes behind the block; returns the new end.
EPM_INLINE char* AddKept(const char* block, uint64_t kept, uint64_t behind_number, char* out) {
  uint64_t begins = kept & ~(kept << 1), ends = ~kept & (kept << 1);
  while (begins != 0) {
    for (int i = 0; i < kAtOnce; ++i) {
      // 64 and 64 where there is none left.
      const int begin = std::countr_zero(begins), end = std::countr_zero(ends);
      const int size = end - begin;
      *out = kNumberMark;
      out += (begins & (0 - begins) & behind_number) != 0 ? 1 : 0;
      std::memcpy(out, block + begin, kCopy);
      for (int at = kCopy; at < size; at += kCopy) {
        std::memcpy(out + at, block + begin + at, kCopy);
      }
      out += size;
      begins &= begins - 1;
      ends &= ends - 1;
    }
  }
  return out;
}

template <class Processor>
EPM_INLINE void Read(std::string_view text, Skeleton* skeleton) {
  KeptText kept_text;  // NOLINT: filled as far as it is read
  char* out = kept_text.data();
  uint64_t hash = kSecretB;
  uint32_t numbers = 0;
  Carry carry;
  uint64_t in_number = 0;  // 1 when the last byte belongs to a number
  for (size_t at = 0; at < text.size(); at += kBlock) {
    const size_t left = text.size() - at;
    const size_t size = left < kBlock ? left : kBlock;
    char padded[kBlock + kCopy];
    const char* block = text.data() + at;
    if (left < kBlock + kCopy) {
      std::memset(padded, 0, sizeof padded);
      std::memcpy(padded, block, size);
      block = padded;
    }
    const BlockMasks masks = Resolve(Processor::Classify(block), &carry);
    const uint64_t behind_number = masks.number << 1 | in_number;
    in_number = masks.number >> (size - 1) & 1;
    const uint64_t starts = masks.number & ~behind_number;
    numbers = AddNumbers(starts, static_cast<uint32_t>(at), numbers, skeleton);
    uint64_t kept = ~masks.dropped;
    if (size < kBlock) kept &= (uint64_t{1} << size) - 1;
    out = AddKept(block, kept, behind_number, out);
    if (out - kept_text.data() >= kKept) out = HashWhole(&hash, kept_text.data(), out);
  }
  *out = kNumberMark;
  skeleton->hash = HashRest(hash, kept_text.data(), out + in_number);
  skeleton->numbers = numbers;
}

#ifdef __x86_64__
EPM_AVX2 void ReadAvx2(std::string_view text, Skeleton* skeleton) { Read<Avx2>(text, skeleton); }

// With masks as g++ 12 takes the forms without for uninitialized.
EPM_AVX512 inline __m512i WidenAvx512(__m128i bytes) {
  return _mm512_maskz_cvtepu8_epi32(0xffff, bytes);
}

// As AddNumbers, all of a block at once: at most every second byte begins one.
EPM_AVX512 inline uint32_t AddNumbersAvx512(uint64_t starts, uint32_t at, uint32_t numbers,
                                            Skeleton* skeleton) {
  if (numbers + kBlock / 2 > Skeleton::kMostNumbers) {
    return AddNumbers(starts, at, numbers, skeleton);
  }
  alignas(kBlock) static constexpr std::array<char, kBlock> kPlaces = [] {
    std::array<char, kBlock> places{};
    for (size_t i = 0; i < kBlock; ++i) places[i] = static_cast<char>(i);
    return places;
  }();
  const auto count = static_cast<uint32_t>(std::popcount(starts));
  const __m512i places = _mm512_maskz_compress_epi8(starts, _mm512_load_si512(kPlaces.data()));
  const __m512i base = _mm512_set1_epi32(static_cast<int>(at));
  uint32_t* const out = skeleton->begin.data() + numbers;
  const __m512i first = WidenAvx512(_mm512_maskz_extracti32x4_epi32(0xf, places, 0));
  _mm512_storeu_si512(out, _mm512_add_epi32(first, base));
  if (count > kBlock / 4) {
    const __m512i second = WidenAvx512(_mm512_maskz_extracti32x4_epi32(0xf, places, 1));
    _mm512_storeu_si512(out + kBlock / 4, _mm512_add_epi32(second, base));
  }
  return numbers + count;
}

// As Read; the processor itself puts together what is kept.
EPM_AVX512 void ReadAvx512(std::string_view text, Skeleton* skeleton) {
  KeptText kept_text;  // NOLINT: filled as far as it is read
  char* out = kept_text.data();
  uint64_t hash = kSecretB;
  uint32_t numbers = 0;
  Carry carry;
  uint64_t in_number = 0;
  for (size_t at = 0; at < text.size(); at += kBlock) {
    const size_t left = text.size() - at;
    const uint64_t valid = left < kBlock ? (uint64_t{1} << left) - 1 : ~uint64_t{0};
    const __m512i block = _mm512_maskz_loadu_epi8(valid, text.data() + at);
    const BlockMasks masks = Resolve(ClassifyAvx512(block), &carry);
    const uint64_t starts = masks.number & ~(masks.number << 1 | in_number);
    in_number = masks.number >> 63;
    numbers = AddNumbersAvx512(starts, static_cast<uint32_t>(at), numbers, skeleton);
    const uint64_t kept = (~masks.dropped | starts) & valid;
    const __m512i marked = _mm512_mask_blend_epi8(starts, block, _mm512_set1_epi8(kNumberMark));
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi8(kept, marked));
    out += std::popcount(kept);
    if (out - kept_text.data() >= kKept) out = HashWhole(&hash, kept_text.data(), out);
  }
  skeleton->hash = HashRest(hash, kept_text.data(), out);
  skeleton->numbers = numbers;
}
#endif

}  // namespace

void ReadSkeleton(std::string_view text, Skeleton* skeleton) {
#ifdef __x86_64__
  static const bool avx512 = __builtin_cpu_supports("avx512vbmi2") &&
                             __builtin_cpu_supports("avx512vbmi") &&
                             __builtin_cpu_supports("avx512bw") &&
                             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2");
  if (avx512) return ReadAvx512(text, skeleton);
  static const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                           __builtin_cpu_supports("bmi2");
  if (avx2) return ReadAvx2(text, skeleton);
#endif
#ifdef __SSE2__
  Read<Sse2>(text, skeleton);
#else
  Read<Portable>(text, skeleton);
#endif
}

}  // namespace epochmeter::ingest::log
