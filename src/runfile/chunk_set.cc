// SPDX-License-Identifier: Apache-2.0
#include "runfile/chunk_set.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include "base/bytes.h"
#include "base/check.h"
#include "model/limits.h"
#include "runfile/event_columns.h"
#include "runfile/record_codec.h"

namespace epochmeter::runfile {
namespace {

constexpr size_t kPieceBytes = size_t{4} << 20;  // of records in one section
constexpr size_t kMaxPrologueBytes = size_t{1} << 20;
constexpr uint8_t kNoSums = 0x80;

struct SectionBytes {
  SectionKind kind;
  uint64_t raw_bytes;
  uint64_t count;
  std::string stored;
};

// Cuts encoded records into pieces at record boundaries and gives each with its record count.
void ForEachPiece(std::string_view records, size_t max_count,
                  const std::function<void(std::string_view, size_t)>& piece) {
  size_t begin = 0, at = 0, count = 0;
  base::ByteReader in(records);
  std::string_view body;
  while (in.View(&body)) {
    at = records.size() - in.remaining();
    if (++count < max_count && at - begin < kPieceBytes) continue;
    piece(records.substr(begin, at - begin), count);
    begin = at;
    count = 0;
  }
  EPM_CHECK(at == records.size()) << "not encoded records";
  if (count > 0) piece(records.substr(begin), count);
}

void AddRecords(SectionKind kind, const std::string& records, std::vector<SectionBytes>& out) {
  ForEachPiece(records, SIZE_MAX, [&](std::string_view piece, size_t count) {
    out.push_back(
        {.kind = kind, .raw_bytes = piece.size(), .count = count, .stored = Compress(piece)});
  });
}

void AddEvents(const std::string& records, std::vector<SectionBytes>& out) {
  ForEachPiece(records, kMaxColumnValues, [&](std::string_view piece, size_t count) {
    std::vector<model::Event> events;
    events.reserve(count);
    ForEachRecord(piece, [&events](model::Record&& record) {
      events.push_back(std::get<model::Event>(std::move(record)));
    });
    const std::string content = EncodeEvents(events);
    out.push_back({.kind = SectionKind::kEvents,
                   .raw_bytes = content.size(),
                   .count = count,
                   .stored = Compress(content)});
  });
}

// Builds the directory and the data section together.
class SeriesWriter {
 public:
  explicit SeriesWriter(const FileId& id) : id_(id) {}

  void AddTimes(const SeriesChunk& chunk) {
    const std::string_view key(reinterpret_cast<const char*>(chunk.t_ns.data()),
                               chunk.t_ns.size() * sizeof(int64_t));
    const auto [found, is_new] = times_of_.emplace(key, times_);
    column_of_.push_back(found->second);
    if (!is_new) return;
    ++times_;
    time_entries_.Varint(chunk.t_ns.size());
    time_entries_.Signed(chunk.t_ns.front());
    time_entries_.Varint(static_cast<uint64_t>(chunk.t_ns.back()) -
                         static_cast<uint64_t>(chunk.t_ns.front()));
    AddPart(EncodeColumn(chunk.t_ns, false, Packing::kZstd), 0, time_entries_);
  }

  void AddChunk(const SeriesChunk& chunk) {
    const model::Summary sums = SumsOf(chunk);
    bool usable = true;
    for (const int64_t raw : chunk.raw) {
      usable = usable && !std::isnan(model::ValueFromRaw(raw, chunk.resolution));
    }
    const auto [min, max] = Extremes(chunk);
    chunk_entries_.Varint(chunk.series);
    chunk_entries_.Varint(column_of_[chunks_++]);
    AddPart(EncodeColumn(chunk.raw, chunk.resolution == 0, Packing::kZstd), usable ? 0 : kNoSums,
            chunk_entries_);
    chunk_entries_.U8(chunk.previous_ns ? 1 : 0);
    if (chunk.previous_ns) chunk_entries_.Signed(*chunk.previous_ns);
    for (const int64_t raw : {chunk.raw.front(), chunk.raw.back(), min, max}) {
      chunk_entries_.Signed(raw);
    }
    chunk_entries_.F64(sums.sum);
    chunk_entries_.F64(sums.weighted_sum);
    chunk_entries_.F64(sums.weight_s);
  }

  std::string Directory() {
    base::ByteWriter out;
    out.Varint(times_);
    out.Raw(time_entries_.bytes());
    out.Varint(chunks_);
    out.Raw(chunk_entries_.bytes());
    return out.Take();
  }
  std::string TakeData() { return std::move(data_); }
  size_t entries() const { return times_ + chunks_; }

 private:
  void AddPart(const EncodedColumn& column, uint8_t flags, base::ByteWriter& entry) {
    entry.U8(static_cast<uint8_t>(static_cast<uint8_t>(column.encoding) | flags));
    entry.Varint(column.bytes.size());
    entry.U32(SeededCrc(id_, column.bytes));
    data_ += column.bytes;
  }

  static model::Summary SumsOf(const SeriesChunk& chunk) {
    model::Summary sums;
    std::optional<int64_t> previous = chunk.previous_ns;
    for (size_t i = 0; i < chunk.raw.size(); ++i) {
      const double weight =
          previous ? model::SampleWeightSeconds(*previous, chunk.t_ns[i], chunk.period_ns) : 0;
      sums.Add(chunk.t_ns[i], model::ValueFromRaw(chunk.raw[i], chunk.resolution), weight);
      previous = chunk.t_ns[i];
    }
    return sums;
  }

  static std::pair<int64_t, int64_t> Extremes(const SeriesChunk& chunk) {
    const auto less = [&chunk](int64_t a, int64_t b) {
      return model::ValueFromRaw(a, chunk.resolution) < model::ValueFromRaw(b, chunk.resolution);
    };
    return {*std::min_element(chunk.raw.begin(), chunk.raw.end(), less),
            *std::max_element(chunk.raw.begin(), chunk.raw.end(), less)};
  }

  const FileId& id_;
  std::unordered_map<std::string_view, size_t> times_of_;
  std::vector<size_t> column_of_;  // of each chunk, in order
  size_t times_ = 0, chunks_ = 0;
  base::ByteWriter time_entries_, chunk_entries_;
  std::string data_;
};

void AddSeries(const FileId& id, const std::vector<SeriesChunk>& series,
               std::vector<SectionBytes>& out) {
  if (series.empty()) return;
  SeriesWriter writer(id);
  for (const SeriesChunk& chunk : series) {
    EPM_CHECK(!chunk.t_ns.empty() && chunk.t_ns.size() == chunk.raw.size() &&
              chunk.t_ns.size() <= kMaxColumnValues);
    writer.AddTimes(chunk);
  }
  for (const SeriesChunk& chunk : series) writer.AddChunk(chunk);
  const std::string directory = writer.Directory();
  out.push_back({.kind = SectionKind::kDirectory,
                 .raw_bytes = directory.size(),
                 .count = writer.entries(),
                 .stored = Compress(directory)});
  std::string data = writer.TakeData();
  out.push_back({.kind = SectionKind::kData, .raw_bytes = data.size(), .count = 0, .stored = {}});
  out.back().stored = std::move(data);
}

// Widens by every time in the set.
std::optional<model::Interval> SpanOf(const ChunkSet& set) {
  std::optional<model::Interval> span;
  const auto widen = [&span](int64_t t_ns) {
    if (!span) span = {.begin_ns = t_ns, .end_ns = t_ns};
    span->begin_ns = std::min(span->begin_ns, t_ns);
    span->end_ns = std::max(span->end_ns, t_ns);
  };
  for (const SeriesChunk& chunk : set.series) {
    widen(chunk.t_ns.front());
    widen(chunk.t_ns.back());
  }
  for (const std::string* records : {&set.events, &set.log, &set.other}) {
    ForEachRecord(*records, [&widen](model::Record&& record) {
      if (const auto* event = std::get_if<model::Event>(&record)) widen(event->t_ns);
      if (const auto* text = std::get_if<model::LogText>(&record)) widen(text->t_ns);
      if (const auto* state = std::get_if<model::SeriesState>(&record)) widen(state->t_ns);
      if (const auto* end = std::get_if<model::RunEnd>(&record)) widen(end->t_ns);
    });
  }
  return span;
}

std::string EncodePrologue(const FileId& id, const ChunkSet& set,
                           const std::vector<SectionBytes>& sections) {
  base::ByteWriter out;
  out.Varint(set.tail_generation);
  out.Varint(set.tail_frames);
  const std::optional<model::Interval> span = SpanOf(set);
  out.Signed(span ? span->begin_ns : 1);
  out.Signed(span ? span->end_ns : 0);
  uint64_t values = 0;
  for (const SeriesChunk& chunk : set.series) values += chunk.raw.size();
  out.Varint(values);
  out.Varint(sections.size());
  for (const SectionBytes& section : sections) {
    out.U8(static_cast<uint8_t>(section.kind));
    out.Varint(section.stored.size());
    out.Varint(section.raw_bytes);
    out.Varint(section.count);
    out.U32(section.kind == SectionKind::kData ? 0 : SeededCrc(id, section.stored));
  }
  return out.Take();
}

bool ReadPart(base::ByteReader& in, uint64_t* offset, StoredPart* part, bool* sums_usable) {
  uint8_t encoding = 0;
  if (!in.U8(&encoding) || !in.Varint(&part->bytes) || !in.U32(&part->crc)) return false;
  *sums_usable = (encoding & kNoSums) == 0;
  part->encoding = static_cast<ColumnEncoding>(encoding & ~kNoSums);
  part->offset = *offset;
  if (part->encoding > ColumnEncoding::kPlain || part->bytes > UINT32_MAX) return false;
  *offset += part->bytes;
  return true;
}

bool ReadTimeEntry(base::ByteReader& in, uint64_t* offset, TimeColumnRef* times) {
  uint64_t count = 0, length = 0;
  bool unused = false;
  if (!in.Varint(&count) || !in.Signed(&times->first_ns) || !in.Varint(&length)) return false;
  if (count == 0 || count > kMaxColumnValues) return false;
  times->count = static_cast<size_t>(count);
  times->last_ns = static_cast<int64_t>(static_cast<uint64_t>(times->first_ns) + length);
  const bool possible =
      model::IsPossibleTime(times->first_ns) && model::IsPossibleTime(times->last_ns);
  return possible && times->last_ns >= times->first_ns &&
         ReadPart(in, offset, &times->part, &unused);
}

bool ReadChunkEntry(base::ByteReader& in, uint64_t* offset, size_t time_columns, ChunkRef* chunk) {
  uint64_t series = 0, column = 0;
  uint8_t has_previous = 0;
  int64_t previous = 0;
  if (!in.Varint(&series) || series > UINT32_MAX || !in.Varint(&column)) return false;
  if (column >= time_columns || !ReadPart(in, offset, &chunk->part, &chunk->sums_usable)) {
    return false;
  }
  if (!in.U8(&has_previous) || (has_previous != 0 && !in.Signed(&previous))) return false;
  if (!model::IsPossibleTime(previous)) return false;
  chunk->series = static_cast<model::SeriesId>(series);
  chunk->time_column = static_cast<size_t>(column);
  if (has_previous != 0) chunk->previous_ns = previous;
  return in.Signed(&chunk->first) && in.Signed(&chunk->last) && in.Signed(&chunk->min) &&
         in.Signed(&chunk->max) && in.F64(&chunk->sum) && in.F64(&chunk->weighted_sum) &&
         in.F64(&chunk->weight_s);
}

bool ReadSection(base::ByteReader& in, SectionRef* section) {
  uint8_t kind = 0;
  if (!in.U8(&kind) || !in.Varint(&section->stored_bytes) || !in.Varint(&section->raw_bytes)) {
    return false;
  }
  section->kind = static_cast<SectionKind>(kind);
  return in.Varint(&section->count) && in.U32(&section->crc);
}

bool ReadPrologue(std::string_view bytes, uint64_t payload_bytes, Prologue* prologue) {
  base::ByteReader in(bytes);
  model::Interval span;
  uint64_t sections = 0;
  if (!in.Varint(&prologue->tail_generation) || !in.Varint(&prologue->tail_frames) ||
      !in.Signed(&span.begin_ns) || !in.Signed(&span.end_ns) || !in.Varint(&prologue->values) ||
      !in.Varint(&sections) || sections > in.remaining()) {
    return false;
  }
  const bool possible = model::IsPossibleTime(span.begin_ns) && model::IsPossibleTime(span.end_ns);
  if (possible && span.begin_ns <= span.end_ns) prologue->span = span;
  uint64_t offset = 8 + bytes.size();
  for (uint64_t i = 0; i < sections; ++i) {
    SectionRef& section = prologue->sections.emplace_back();
    if (!ReadSection(in, &section)) return false;
    section.offset = offset;
    if (section.stored_bytes > payload_bytes - offset) return false;
    offset += section.stored_bytes;
  }
  return offset == payload_bytes;
}

}  // namespace

std::string_view SectionName(SectionKind kind) {
  constexpr std::array<std::string_view, 7> kNames = {
      "", "definitions", "events", "log text", "other records", "directory", "data"};
  const auto index = static_cast<size_t>(kind);
  return index >= 1 && index < kNames.size() ? kNames[index] : "unknown section";
}

std::string EncodeChunkSet(const FileId& id, const ChunkSet& set) {
  std::vector<SectionBytes> sections;
  AddRecords(SectionKind::kSchema, set.schema, sections);
  AddEvents(set.events, sections);
  AddRecords(SectionKind::kLog, set.log, sections);
  AddRecords(SectionKind::kOther, set.other, sections);
  AddSeries(id, set.series, sections);
  const std::string prologue = EncodePrologue(id, set, sections);
  EPM_CHECK(prologue.size() <= kMaxPrologueBytes);
  base::ByteWriter out;
  out.U32(static_cast<uint32_t>(prologue.size()));
  out.U32(SeededCrc(id, prologue));
  out.Raw(prologue);
  for (const SectionBytes& section : sections) out.Raw(section.stored);
  return out.Take();
}

const SectionRef* Prologue::Find(SectionKind kind) const {
  for (const SectionRef& section : sections) {
    if (section.kind == kind) return &section;
  }
  return nullptr;
}

PrologueStatus DecodePrologue(const FileId& id, std::string_view bytes, uint64_t payload_bytes,
                              Prologue* prologue, size_t* needed) {
  base::ByteReader in(bytes);
  uint32_t size = 0, crc = 0;
  if (!in.U32(&size) || !in.U32(&crc)) return PrologueStatus::kDamaged;
  if (size > kMaxPrologueBytes || size + 8 > payload_bytes) return PrologueStatus::kDamaged;
  std::string_view body;
  if (!in.Raw(size, &body)) {
    *needed = size + 8;
    return PrologueStatus::kNeedsMore;
  }
  const bool good = crc == SeededCrc(id, body) && ReadPrologue(body, payload_bytes, prologue);
  return good ? PrologueStatus::kGood : PrologueStatus::kDamaged;
}

std::optional<std::string> DecodeSection(const FileId& id, const SectionRef& section,
                                         std::string_view stored) {
  std::string content;
  if (stored.size() != section.stored_bytes || section.crc != SeededCrc(id, stored)) return {};
  if (!Decompress(stored, static_cast<size_t>(section.raw_bytes), &content)) return {};
  return content;
}

bool DecodeDirectory(std::string_view bytes, uint64_t data_bytes, Directory* directory) {
  base::ByteReader in(bytes);
  uint64_t count = 0, offset = 0;
  if (!in.Varint(&count) || count > in.remaining()) return false;
  for (uint64_t i = 0; i < count; ++i) {
    if (!ReadTimeEntry(in, &offset, &directory->times.emplace_back())) return false;
  }
  if (!in.Varint(&count) || count > in.remaining()) return false;
  for (uint64_t i = 0; i < count; ++i) {
    ChunkRef& chunk = directory->chunks.emplace_back();
    if (!ReadChunkEntry(in, &offset, directory->times.size(), &chunk)) return false;
  }
  // Offsets only grow and each part is below 2^32, so that the sum can't wrap.
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

SkippedRecords ForEachRecord(std::string_view bytes,
                             const std::function<void(model::Record&&)>& each) {
  SkippedRecords skipped;
  base::ByteReader in(bytes);
  while (!in.done()) {
    model::Record record;
    switch (DecodeRecord(in, &record)) {
      case DecodeStatus::kRecord:
        each(std::move(record));
        break;
      case DecodeStatus::kUnknown:
        ++skipped.unknown;
        break;
      case DecodeStatus::kDamaged:
        ++skipped.damaged;
        break;
      case DecodeStatus::kIncomplete:
        ++skipped.damaged;
        return skipped;
    }
  }
  return skipped;
}

SkippedRecords ForEachRecordOf(SectionKind kind, std::string_view content,
                               const std::function<void(model::Record&&)>& each) {
  if (kind != SectionKind::kEvents) return ForEachRecord(content, each);
  std::vector<model::Event> events;
  if (!DecodeEvents(content, &events)) return {.unknown = 0, .damaged = 1};
  for (model::Event& event : events) each(std::move(event));
  return {};
}

}  // namespace epochmeter::runfile
