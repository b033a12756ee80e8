// SPDX-License-Identifier: Apache-2.0
// The payload of a chunk set frame (FORMAT.md, "Main"): ten minutes of a run, standing alone.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/run.h"
#include "runfile/column_codec.h"
#include "runfile/frame.h"

namespace epochmeter::runfile {

// Samples of one series, in order of time. `raw` are stored integers (model::RawFromValue).
struct SeriesChunk {
  model::SeriesId series = 0;
  double resolution = 0;
  int64_t period_ns = 0;
  std::optional<int64_t> previous_ns;  // the sample before the first one, in an earlier chunk
  size_t times = 0;                    // index of its time column
  std::vector<int64_t> raw;            // as many as times
};

// What is sealed at once. The strings hold encoded records (record_codec.h), one after the other.
struct ChunkSet {
  uint64_t tail_generation = 0;  // made of this tail's first `tail_frames` frames
  uint64_t tail_frames = 0;
  std::string schema;
  std::string events;
  std::string log;
  std::string other;
  // Time columns, each of 1 to kMaxColumnValues instants that don't fall; series that were sampled
  // together share one.
  std::vector<std::vector<int64_t>> times;
  std::vector<SeriesChunk> series;  // one or more a series
};
std::string EncodeChunkSet(const FileId& id, const ChunkSet& set);

enum class SectionKind : uint8_t {
  kSchema = 1,
  kEvents = 2,
  kLog = 3,
  kOther = 4,
  kDirectory = 5,
  kData = 6
};
std::string_view SectionName(SectionKind kind);

// Places are offsets in the payload and lie inside it.
struct SectionRef {
  SectionKind kind{};  // may be one we don't know
  uint64_t offset = 0;
  uint64_t stored_bytes = 0;
  uint64_t raw_bytes = 0;
  uint64_t count = 0;
  uint32_t crc = 0;
};

struct Prologue {
  uint64_t tail_generation = 0;
  uint64_t tail_frames = 0;
  std::optional<model::Interval> span;
  uint64_t values = 0;
  std::vector<SectionRef> sections;

  const SectionRef* Find(SectionKind kind) const;
};
// `bytes` are the payload's first bytes. When they are too few, *needed is how many it takes.
enum class PrologueStatus { kGood, kNeedsMore, kDamaged };
PrologueStatus DecodePrologue(const FileId& id, std::string_view bytes, uint64_t payload_bytes,
                              Prologue* prologue, size_t* needed);

// The decompressed content of a section, given its stored bytes; nothing when damaged.
std::optional<std::string> DecodeSection(const FileId& id, const SectionRef& section,
                                         std::string_view stored);

// Stands in the encoding byte of a chunk with a NaN.
inline constexpr uint8_t kNoSums = 0x80;

// Places are offsets in the data section, which is shorter than 4 GiB as every frame is. Packed
// with care: a reader may hold hundreds of thousands of these.
struct StoredPart {
  uint32_t offset = 0;
  uint32_t bytes = 0;
  uint32_t crc = 0;
  ColumnEncoding encoding = ColumnEncoding::kConstant;
};
struct TimeColumnRef {
  int64_t first_ns = 0, last_ns = 0;
  uint32_t count = 0;
  StoredPart part;
};
struct ChunkRef {
  model::SeriesId series = 0;
  uint32_t time_column = 0;
  StoredPart part;
  bool sums_usable = true;
  bool has_previous = false;
  int64_t previous = 0;                           // ns, when there is one
  int64_t first = 0, last = 0, min = 0, max = 0;  // stored integers
  double sum = 0, weighted_sum = 0, weight_s = 0;

  std::optional<int64_t> previous_ns() const {
    return has_previous ? std::optional(previous) : std::nullopt;
  }
};
struct Directory {
  std::vector<TimeColumnRef> times;
  std::vector<ChunkRef> chunks;
  bool by_series = true;  // the ids of `chunks` don't fall
};
// Every place is inside `data_bytes` and every time column exists.
bool DecodeDirectory(std::string_view bytes, uint64_t data_bytes, Directory* directory);
// False when the stored bytes are damaged.
bool DecodeTimes(const FileId& id, const TimeColumnRef& times, std::string_view stored,
                 std::vector<int64_t>* t_ns);
bool DecodeRaw(const FileId& id, const ChunkRef& chunk, size_t count, std::string_view stored,
               std::vector<int64_t>* raw);

// Calls `each` for every record in `bytes`. Gives the number of those that were none.
struct SkippedRecords {
  uint64_t unknown = 0;
  uint64_t damaged = 0;
};
SkippedRecords ForEachRecord(std::string_view bytes,
                             const std::function<void(model::Record&&)>& each);
// The same for a decompressed section of kinds 1 to 4.
SkippedRecords ForEachRecordOf(SectionKind kind, std::string_view content,
                               const std::function<void(model::Record&&)>& each);

}  // namespace epochmeter::runfile
