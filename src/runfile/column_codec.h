// SPDX-License-Identifier: Apache-2.0
// Integers and bytes made small (FORMAT.md, "Column"). Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace epochmeter::runfile {

inline constexpr size_t kMaxColumnValues = 65536;
inline constexpr size_t kMaxSectionBytes = size_t{64} << 20;

std::string Compress(std::string_view bytes);
// As one zstd frame too, but each part that is worth it is a block of its own: planes have nothing
// in common, and what is noise is then stored as it is, which is smaller and faster to read. `ends`
// are rising offsets of where parts end.
std::string CompressParts(std::string_view bytes, const std::vector<size_t>& ends);
// False unless `compressed` gives exactly `raw_size` bytes (at most kMaxSectionBytes).
bool Decompress(std::string_view compressed, size_t raw_size, std::string* bytes);

enum class ColumnEncoding : uint8_t { kConstant, kDelta, kPlain };

// Byte planes alone, for columns that are compressed together later, or each with zstd.
enum class Packing : uint8_t { kPlanes, kZstd };

// The stored part of `values`; the first one and their number are kept by the caller.
struct EncodedColumn {
  ColumnEncoding encoding = ColumnEncoding::kConstant;
  std::string bytes;
};
// Differences for integers and times; `plain` for the bits of doubles. Equal values become
// kConstant in both cases.
EncodedColumn EncodeColumn(const std::vector<int64_t>& values, bool plain, Packing packing);
// Adds where the planes of `planes` end, a column of kPlanes that stands at `begin` of something.
void AddPlaneEnds(std::string_view planes, size_t begin, std::vector<size_t>* ends);
// False for bytes that are not the stored part of `count` values.
bool DecodeColumn(ColumnEncoding encoding, std::string_view bytes, Packing packing, int64_t first,
                  size_t count, std::vector<int64_t>* values);

}  // namespace epochmeter::runfile
