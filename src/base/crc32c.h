// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli, polynomial 0x1EDC6F41 reflected), as in RFC 3720 appendix B.4. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace epochmeter::base {

// CRC of `size` bytes continuing from `crc`, the CRC of what came before (0 for a fresh one):
// Crc32c(Crc32c(0, a), b) == Crc32c(0, a+b).
uint32_t Crc32c(uint32_t crc, const void* data, size_t size);
inline uint32_t Crc32c(uint32_t crc, std::string_view bytes) {
  return Crc32c(crc, bytes.data(), bytes.size());
}

// The same without the CPU's instruction for it, as other CPUs have to do it.
uint32_t Crc32cByTables(uint32_t crc, std::string_view bytes);

}  // namespace epochmeter::base
