// SPDX-License-Identifier: Apache-2.0
// What is left of a line when its numbers are masked: the hash by which lines that differ only in
// numbers and padding find the same plan, and where the numbers are. Runs once for every line.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace epochmeter::ingest::log {

// Numbers are runs of digits with their point, exponent and sign; digits behind a letter, '_' or
// '@' are part of a word ("top5"). Of several spaces only the first counts.
struct Skeleton {
  static constexpr size_t kMostNumbers = 256;  // further ones are masked but have no place

  uint64_t hash = 0;
  uint32_t numbers = 0;
  std::array<uint32_t, kMostNumbers> begin;  // offsets of the numbers in the text
};

// Fills what `skeleton` holds; `begin` beyond `numbers` is left as it was.
void ReadSkeleton(std::string_view text, Skeleton* skeleton);

}  // namespace epochmeter::ingest::log
