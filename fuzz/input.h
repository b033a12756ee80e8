// SPDX-License-Identifier: Apache-2.0
// Cuts a fuzzer's bytes into what a target needs. Beyond the end there are zeros and empty texts,
// so that every input means something.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace epochmeter::fuzz {

class Input {
 public:
  explicit Input(std::string_view bytes) : rest_(bytes) {}

  bool done() const { return rest_.empty(); }
  uint8_t Byte() {
    const std::string_view one = Take(1);
    return one.empty() ? uint8_t{0} : static_cast<uint8_t>(one.front());
  }
  // 0 <= result < bound.
  size_t Below(size_t bound) { return Byte() % bound; }
  bool Bit() { return (Byte() & 1) != 0; }
  // Little-endian, of `size` bytes.
  uint64_t Number(size_t size = 8) {
    uint64_t number = 0;
    int shift = 0;
    for (const char byte : Take(size)) {
      number |= uint64_t{static_cast<uint8_t>(byte)} << shift;
      shift += 8;
    }
    return number;
  }
  std::string_view Take(size_t size) {
    const std::string_view part = rest_.substr(0, size);
    rest_.remove_prefix(part.size());
    return part;
  }
  // A text of up to 255 bytes, its length before it.
  std::string_view Text() { return Take(Byte()); }
  // Up to the separator, which is dropped, or to the end.
  std::string_view Until(std::string_view separator) {
    const size_t end = std::min(rest_.find(separator), rest_.size());
    const std::string_view part = Take(end);
    Take(separator.size());
    return part;
  }
  std::string_view Rest() { return Take(rest_.size()); }

 private:
  std::string_view rest_;
};

}  // namespace epochmeter::fuzz
