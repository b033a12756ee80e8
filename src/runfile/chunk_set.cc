// SPDX-License-Identifier: Apache-2.0
#include "runfile/chunk_set.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "base/bytes.h"
#include "base/check.h"
#include "model/limits.h"
#include "model/steps.h"
#include "runfile/event_columns.h"
#include "runfile/record_codec.h"

namespace epochmeter::runfile {
namespace {

constexpr size_t kPieceBytes = size_t{4} << 20;  // of records in one section
constexpr size_t kMaxPrologueBytes = size_t{1} << 20;

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
    std::vector<size_t> ends;
    const std::string content = EncodeEvents(events, &ends);
    out.push_back({.kind = SectionKind::kEvents,
                   .raw_bytes = content.size(),
                   .count = count,
                   .stored = CompressParts(content, ends)});
  });
}

// Builds the directory and the data section together.
class SeriesWriter {
 public:
  SeriesWriter(const FileId& id, const ChunkSet& set) : id_(id), set_(set) {}

  void AddTimes(const std::vector<int64_t>& t_ns) {
    time_entries_.Varint(t_ns.size());
    time_entries_.Signed(t_ns.front());
    time_entries_.Varint(static_cast<uint64_t>(t_ns.back()) - static_cast<uint64_t>(t_ns.front()));
    AddPart(EncodeColumn(t_ns, false, Packing::kZstd), 0, time_entries_);
  }

  void AddChunk(const SeriesChunk& chunk) {
    const Sums sums = SumsOf(chunk);
    chunk_entries_.Varint(chunk.series);
    chunk_entries_.Varint(chunk.times);
    AddPart(EncodeColumn(chunk.raw, chunk.resolution == 0, Packing::kZstd),
            sums.usable ? 0 : kNoSums, chunk_entries_);
    chunk_entries_.U8(chunk.previous_ns ? 1 : 0);
    if (chunk.previous_ns) chunk_entries_.Signed(*chunk.previous_ns);
    for (const int64_t raw : {chunk.raw.front(), chunk.raw.back(), sums.min, sums.max}) {
      chunk_entries_.Signed(raw);
    }
    chunk_entries_.F64(sums.sum);
    chunk_entries_.F64(sums.weighted_sum);
    chunk_entries_.F64(sums.weight_s);
  }

  std::string Directory() {
    base::ByteWriter out;
    out.Varint(set_.times.size());
    out.Raw(time_entries_.bytes());
    out.Varint(set_.series.size());
    out.Raw(chunk_entries_.bytes());
    return out.Take();
  }
  std::string TakeData() { return std::move(data_); }

 private:
  struct Sums {
    bool usable = true;
    int64_t min = 0, max = 0;
    double sum = 0, weighted_sum = 0, weight_s = 0;
  };

  void AddPart(const EncodedColumn& column, uint8_t flags, base::ByteWriter& entry) {
    entry.U8(static_cast<uint8_t>(static_cast<uint8_t>(column.encoding) | flags));
    entry.Varint(column.bytes.size());
    entry.U32(SeededCrc(id_, column.bytes));
    data_ += column.bytes;
  }

  // What each sample of the chunk weighs; the same for all series that are sampled together.
  const std::vector<double>& WeightsOf(const SeriesChunk& chunk) {
    const WeightsKey key{chunk.times, chunk.period_ns, chunk.previous_ns};
    if (weights_key_ == key) return weights_;
    weights_key_ = key;
    weights_.clear();
    std::optional<int64_t> previous = chunk.previous_ns;
    for (const int64_t t_ns : set_.times[chunk.times]) {
      weights_.push_back(previous ? model::SampleWeightSeconds(*previous, t_ns, chunk.period_ns)
                                  : 0);
      previous = t_ns;
    }
    return weights_;
  }

  Sums SumsOf(const SeriesChunk& chunk) {
    const std::vector<double>& weights = WeightsOf(chunk);
    const model::Steps steps(chunk.resolution);
    Sums sums{.min = chunk.raw.front(), .max = chunk.raw.front()};
    double min = steps.Value(sums.min), max = min;
    for (size_t i = 0; i < chunk.raw.size(); ++i) {
      const double value = steps.Value(chunk.raw[i]);
      sums.usable = sums.usable && !std::isnan(value);
      if (value < min) min = value, sums.min = chunk.raw[i];
      if (value > max) max = value, sums.max = chunk.raw[i];
      sums.sum += value;
      sums.weighted_sum += value * weights[i];
      sums.weight_s += weights[i];
    }
    return sums;
  }

  using WeightsKey = std::tuple<size_t, int64_t, std::optional<int64_t>>;

  const FileId& id_;
  const ChunkSet& set_;
  std::optional<WeightsKey> weights_key_;
  std::vector<double> weights_;
  base::ByteWriter time_entries_, chunk_entries_;
  std::string data_;
};

void AddSeries(const FileId& id, const ChunkSet& set, std::vector<SectionBytes>& out) {
  if (set.series.empty()) return;
  SeriesWriter writer(id, set);
  for (const std::vector<int64_t>& times : set.times) {
    EPM_CHECK(!times.empty() && times.size() <= kMaxColumnValues);
    writer.AddTimes(times);
  }
  for (const SeriesChunk& chunk : set.series) {
    EPM_CHECK(chunk.raw.size() == set.times[chunk.times].size());
    writer.AddChunk(chunk);
  }
  const std::string directory = writer.Directory();
  out.push_back({.kind = SectionKind::kDirectory,
                 .raw_bytes = directory.size(),
                 .count = set.times.size() + set.series.size(),
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
  for (const std::vector<int64_t>& times : set.times) {
    widen(times.front());
    widen(times.back());
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
  AddSeries(id, set, sections);
  const std::string prologue = EncodePrologue(id, set, sections);
  EPM_CHECK(prologue.size() <= kMaxPrologueBytes);
  base::ByteWriter out;
  size_t bytes = 8 + prologue.size();
  for (const SectionBytes& section : sections) bytes += section.stored.size();
  out.Reserve(bytes);
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
