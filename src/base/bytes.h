// SPDX-License-Identifier: Apache-2.0
// Building and reading byte strings: little-endian integers, LEB128 varints, zigzag, strings.
// The reader never passes its end: a read past it returns false and leaves the output untouched.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace epochmeter::base {

constexpr uint64_t ZigZag(int64_t v) {
  return (static_cast<uint64_t>(v) << 1) ^ static_cast<uint64_t>(v >> 63);
}
constexpr int64_t UnZigZag(uint64_t v) { return static_cast<int64_t>((v >> 1) ^ (~(v & 1) + 1)); }

inline constexpr size_t kMaxVarintBytes = 10;
// Writes at `to`, which has room for the longest one, and gives the place behind it.
inline char* PutVarint(uint64_t v, char* to) {
  for (; v >= 0x80; v >>= 7) *to++ = static_cast<char>(v | 0x80);
  *to++ = static_cast<char>(v);
  return to;
}

class ByteWriter {
 public:
  void U8(uint8_t v) { out_.push_back(static_cast<char>(v)); }
  void U32(uint32_t v) { Fixed(v); }
  void U64(uint64_t v) { Fixed(v); }
  void F64(double v) { Fixed(std::bit_cast<uint64_t>(v)); }
  void Varint(uint64_t v) {
    char raw[kMaxVarintBytes];
    out_.append(raw, static_cast<size_t>(PutVarint(v, raw) - raw));
  }
  void Signed(int64_t v) { Varint(ZigZag(v)); }
  void Text(std::string_view s) {
    Varint(s.size());
    out_.append(s);
  }
  void Raw(std::string_view s) { out_.append(s); }
  // Lets `put` write at most `most` bytes through a pointer; it gives the place behind them.
  template <typename Put>
  void AtMost(size_t most, const Put& put) {
    const size_t begin = out_.size();
    out_.resize(begin + most);
    out_.resize(static_cast<size_t>(put(out_.data() + begin) - out_.data()));
  }
  // Makes a string with its length in front of what was written since `begin`.
  void MakeText(size_t begin) {
    char raw[kMaxVarintBytes];
    const char* const end = PutVarint(out_.size() - begin, raw);
    out_.insert(begin, raw, static_cast<size_t>(end - raw));
  }
  void Clear() { out_.clear(); }
  void Reserve(size_t bytes) { out_.reserve(bytes); }

  const std::string& bytes() const { return out_; }
  size_t size() const { return out_.size(); }
  std::string Take() { return std::move(out_); }
  // Overwrites four bytes already written, for lengths and checksums known later.
  void PatchU32(size_t at, uint32_t v) {
    static_assert(std::endian::native == std::endian::little);
    std::memcpy(out_.data() + at, &v, sizeof v);
  }

 private:
  template <typename T>
  void Fixed(T v) {
    static_assert(std::endian::native == std::endian::little);
    char raw[sizeof v];
    std::memcpy(raw, &v, sizeof v);
    out_.append(raw, sizeof v);
  }
  std::string out_;
};

// Borrows its bytes.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  [[nodiscard]] bool U8(uint8_t* v) { return Fixed(v); }
  [[nodiscard]] bool U32(uint32_t* v) { return Fixed(v); }
  [[nodiscard]] bool U64(uint64_t* v) { return Fixed(v); }
  [[nodiscard]] bool F64(double* v) {
    uint64_t raw = 0;
    if (!Fixed(&raw)) return false;
    *v = std::bit_cast<double>(raw);
    return true;
  }
  // False also for a varint longer than 64 bits.
  [[nodiscard]] bool Varint(uint64_t* v) {
    if (rest_.empty() || static_cast<uint8_t>(rest_.front()) >= 0x80) return LongVarint(v);
    *v = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return true;
  }
  [[nodiscard]] bool Signed(int64_t* v) {
    uint64_t raw = 0;
    if (!Varint(&raw)) return false;
    *v = UnZigZag(raw);
    return true;
  }
  [[nodiscard]] bool Text(std::string* s) {
    std::string_view view;
    if (!View(&view)) return false;
    s->assign(view);
    return true;
  }
  // A length-prefixed string without a copy.
  [[nodiscard]] bool View(std::string_view* s) {
    const std::string_view before = rest_;
    uint64_t size = 0;
    if (Varint(&size) && size <= rest_.size() && Raw(static_cast<size_t>(size), s)) return true;
    rest_ = before;
    return false;
  }
  [[nodiscard]] bool Raw(size_t size, std::string_view* s) {
    if (size > rest_.size()) return false;
    *s = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }
  size_t remaining() const { return rest_.size(); }
  bool done() const { return rest_.empty(); }

 private:
  bool LongVarint(uint64_t* v);
  template <typename T>
  bool Fixed(T* v) {
    if (rest_.size() < sizeof *v) return false;
    std::memcpy(v, rest_.data(), sizeof *v);
    rest_.remove_prefix(sizeof *v);
    return true;
  }
  std::string_view rest_;
};

}  // namespace epochmeter::base
