// SPDX-License-Identifier: Apache-2.0
// The directory of a chunk set and the columns that it leads to, as they are read.
#include <algorithm>

#include "base/bytes.h"
#include "model/limits.h"
#include "runfile/chunk_set.h"

namespace epochmeter::runfile {
namespace {

constexpr size_t kLeastEntryBytes = 37;  // of a chunk

bool ReadPart(base::ByteReader& in, uint64_t* offset, StoredPart* part, bool* sums_usable) {
  uint8_t encoding = 0;
  uint64_t bytes = 0;
  if (!in.U8(&encoding) || !in.Varint(&bytes) || !in.U32(&part->crc)) return false;
  *sums_usable = (encoding & kNoSums) == 0;
  part->encoding = static_cast<ColumnEncoding>(encoding & ~kNoSums);
  if (part->encoding > ColumnEncoding::kPlain || bytes > UINT32_MAX) return false;
  if (*offset > UINT32_MAX - bytes) return false;
  part->offset = static_cast<uint32_t>(*offset);
  part->bytes = static_cast<uint32_t>(bytes);
  *offset += bytes;
  return true;
}

bool ReadTimeEntry(base::ByteReader& in, uint64_t* offset, TimeColumnRef* times) {
  uint64_t count = 0, length = 0;
  bool unused = false;
  if (!in.Varint(&count) || !in.Signed(&times->first_ns) || !in.Varint(&length)) return false;
  if (count == 0 || count > kMaxColumnValues) return false;
  times->count = static_cast<uint32_t>(count);
  times->last_ns = static_cast<int64_t>(static_cast<uint64_t>(times->first_ns) + length);
  const bool possible =
      model::IsPossibleTime(times->first_ns) && model::IsPossibleTime(times->last_ns);
  return possible && times->last_ns >= times->first_ns &&
         ReadPart(in, offset, &times->part, &unused);
}

bool ReadChunkEntry(base::ByteReader& in, uint64_t* offset, size_t time_columns, ChunkRef* chunk) {
  uint64_t series = 0, column = 0;
  uint8_t has_previous = 0;
  if (!in.Varint(&series) || series > UINT32_MAX || !in.Varint(&column)) return false;
  if (column >= time_columns || !ReadPart(in, offset, &chunk->part, &chunk->sums_usable)) {
    return false;
  }
  if (!in.U8(&has_previous) || (has_previous != 0 && !in.Signed(&chunk->previous))) return false;
  if (!model::IsPossibleTime(chunk->previous)) return false;
  chunk->series = static_cast<model::SeriesId>(series);
  chunk->time_column = static_cast<uint32_t>(column);
  chunk->has_previous = has_previous != 0;
  return in.Signed(&chunk->first) && in.Signed(&chunk->last) && in.Signed(&chunk->min) &&
         in.Signed(&chunk->max) && in.F64(&chunk->sum) && in.F64(&chunk->weighted_sum) &&
         in.F64(&chunk->weight_s);
}

}  // namespace

bool DecodeDirectory(std::string_view bytes, uint64_t data_bytes, Directory* directory) {
  base::ByteReader in(bytes);
  uint64_t count = 0, offset = 0;
  if (!in.Varint(&count) || count > in.remaining()) return false;
  for (uint64_t i = 0; i < count; ++i) {
    if (!ReadTimeEntry(in, &offset, &directory->times.emplace_back())) return false;
  }
  if (!in.Varint(&count) || count > in.remaining() / kLeastEntryBytes) return false;
  directory->chunks.reserve(static_cast<size_t>(count));
  model::SeriesId last = 0;
  for (uint64_t i = 0; i < count; ++i) {
    ChunkRef& chunk = directory->chunks.emplace_back();
    if (!ReadChunkEntry(in, &offset, directory->times.size(), &chunk)) return false;
    directory->by_series = directory->by_series && chunk.series >= last;
    last = chunk.series;
  }
  return offset == data_bytes;
}

bool DecodeTimes(const FileId& id, const TimeColumnRef& times, std::string_view stored,
                 std::vector<int64_t>* t_ns) {
  if (stored.size() != times.part.bytes || times.part.crc != SeededCrc(id, stored)) return false;
  return DecodeColumn(times.part.encoding, stored, Packing::kZstd, times.first_ns, times.count,
                      t_ns) &&
         t_ns->back() == times.last_ns && std::is_sorted(t_ns->begin(), t_ns->end());
}

bool DecodeRaw(const FileId& id, const ChunkRef& chunk, size_t count, std::string_view stored,
               std::vector<int64_t>* raw) {
  if (stored.size() != chunk.part.bytes || chunk.part.crc != SeededCrc(id, stored)) return false;
  return DecodeColumn(chunk.part.encoding, stored, Packing::kZstd, chunk.first, count, raw);
}

}  // namespace epochmeter::runfile
