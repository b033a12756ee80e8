// SPDX-License-Identifier: Apache-2.0
#include "runfile/dump.h"

#include <fmt/format.h>
#include <zstd.h>

#include <map>
#include <optional>

#include "base/bytes.h"
#include "base/check.h"
#include "runfile/chunk_set.h"
#include "runfile/record_codec.h"
#include "runfile/record_text.h"
#include "runfile/run_files.h"

namespace epochmeter::runfile {
namespace {

constexpr uint64_t kMaxPrintedValues = uint64_t{1} << 26;  // of one chunk set

// Everything in a chunk set, or nothing when a part of it is damaged or of a newer version.
class ChunkSetLoader {
 public:
  ChunkSetLoader(const FileId& id, std::string_view payload) : id_(id), payload_(payload) {}

  std::optional<ChunkSet> Load() {
    Prologue prologue;
    size_t needed = 0;
    if (DecodePrologue(id_, payload_, payload_.size(), &prologue, &needed) !=
        PrologueStatus::kGood) {
      return {};
    }
    set_.tail_generation = prologue.tail_generation;
    set_.tail_frames = prologue.tail_frames;
    const SectionRef* data = prologue.Find(SectionKind::kData);
    if (data != nullptr) data_bytes_ = data->stored_bytes;
    for (const SectionRef& section : prologue.sections) {
      if (!LoadSection(section)) return {};
    }
    if (data != nullptr && !LoadSeries(payload_.substr(data->offset, data->stored_bytes))) {
      return {};
    }
    return std::move(set_);
  }

 private:
  std::string* Records(SectionKind kind) {
    switch (kind) {
      case SectionKind::kSchema:
        return &set_.schema;
      case SectionKind::kEvents:
        return &set_.events;
      case SectionKind::kLog:
        return &set_.log;
      case SectionKind::kOther:
        return &set_.other;
      default:
        return nullptr;
    }
  }

  bool LoadSection(const SectionRef& section) {
    if (section.kind == SectionKind::kData) return true;
    const std::optional<std::string> content =
        DecodeSection(id_, section, payload_.substr(section.offset, section.stored_bytes));
    if (!content) return false;
    if (section.kind == SectionKind::kDirectory) {
      return DecodeDirectory(*content, data_bytes_, &directory_);
    }
    std::string* records = Records(section.kind);
    if (records == nullptr) return false;
    base::ByteWriter out;
    const SkippedRecords skipped =
        ForEachRecordOf(section.kind, *content, [&](model::Record&& record) {
          if (const auto* series = std::get_if<model::SeriesDef>(&record)) {
            series_[series->id] = *series;
          }
          EncodeRecord(record, out);
        });
    *records += out.bytes();
    return skipped.unknown + skipped.damaged == 0;
  }

  bool LoadSeries(std::string_view data) {
    uint64_t values = 0;
    for (const TimeColumnRef& times : directory_.times) {
      values += times.count;
      if (values > kMaxPrintedValues) return false;
      const std::string_view stored = data.substr(times.part.offset, times.part.bytes);
      if (!DecodeTimes(id_, times, stored, &set_.times.emplace_back())) return false;
    }
    for (const ChunkRef& ref : directory_.chunks) {
      const TimeColumnRef& times = directory_.times[ref.time_column];
      const auto def = series_.find(ref.series);
      values += times.count;
      if (def == series_.end() || values > kMaxPrintedValues) return false;
      SeriesChunk& chunk = set_.series.emplace_back();
      chunk.series = ref.series;
      chunk.resolution = def->second.metric.resolution;
      chunk.period_ns = def->second.period_ns;
      chunk.previous_ns = ref.previous_ns();
      chunk.times = ref.time_column;
      const std::string_view stored = data.substr(ref.part.offset, ref.part.bytes);
      if (!DecodeRaw(id_, ref, times.count, stored, &chunk.raw)) return false;
    }
    return true;
  }

  const FileId& id_;
  std::string_view payload_;
  uint64_t data_bytes_ = 0;
  ChunkSet set_;
  Directory directory_;
  std::map<model::SeriesId, model::SeriesDef> series_;
};

// The first value, then differences (modulo 2^64).
std::string Integers(const std::vector<int64_t>& values) {
  std::string out = fmt::format("{}", values.front());
  for (size_t i = 1; i < values.size(); ++i) {
    const auto difference = static_cast<uint64_t>(values[i]) - static_cast<uint64_t>(values[i - 1]);
    out += fmt::format(",{}", static_cast<int64_t>(difference));
  }
  return out;
}

class Dumper {
 public:
  explicit Dumper(std::string_view bytes) : bytes_(bytes) {}

  std::string Run() {
    Line("emr-text 1 zstd={}", ZSTD_versionNumber());
    const std::unique_ptr<File> file = BytesAsFile(std::string(bytes_), "");
    const base::Result<FileScan> scan = ScanFile(*file);
    EPM_CHECK(scan.ok());
    uint64_t at = Header(*scan);
    for (const FrameRef& frame : scan->frames) {
      Damaged(at, frame.offset);
      Frame(frame);
      at = frame.end();
    }
    Damaged(at, bytes_.size());
    return std::move(out_);
  }

 private:
  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_ += '\n';
  }

  void Damaged(uint64_t begin, uint64_t end) {
    if (begin >= end) return;
    Line("damaged offset={} bytes={} hex={}", begin, end - begin,
         HexText(bytes_.substr(begin, end - begin)));
  }

  uint64_t Header(const FileScan& scan) {
    if (!scan.header) return 0;
    const FileHeader& header = *scan.header;
    if (EncodeFileHeader(header) != bytes_.substr(0, kFileHeaderBytes)) return 0;
    Line("header major={} minor={} kind={} id={} generation={}", header.major, header.minor,
         static_cast<uint32_t>(header.kind), FileIdText(header.id), header.generation);
    return kFileHeaderBytes;
  }

  void Frame(const FrameRef& frame) {
    const std::string_view payload = bytes_.substr(frame.payload_offset(), frame.header.length);
    const std::string_view whole = bytes_.substr(frame.offset, frame.end() - frame.offset);
    if (EncodeFrame(frame.header, frame.offset, payload) != whole) {
      return Damaged(frame.offset, frame.end());
    }
    Line("frame type={} generation={} sequence={} id={}", static_cast<uint16_t>(frame.header.type),
         frame.header.generation, frame.header.sequence, FileIdText(frame.header.id));
    const size_t before = out_.size();
    if (Payload(frame, std::string(payload))) return;
    out_.resize(before);
    Line("payload hex={}", HexText(payload));
  }

  // False when the lines would not give the same bytes back.
  bool Payload(const FrameRef& frame, const std::string& payload) {
    switch (frame.header.type) {
      case FrameType::kRecords:
        return Records(payload) && encoded_ == payload;
      case FrameType::kSchema:
        return Schema(frame, payload);
      case FrameType::kChunkSet:
        return Set(frame.header.id, payload);
      case FrameType::kFooter:
        return Footer(payload);
    }
    return false;
  }

  bool Records(std::string_view bytes) {
    base::ByteWriter again;
    const SkippedRecords skipped = ForEachRecord(bytes, [&](model::Record&& record) {
      Line("{}", RecordToText(record));
      EncodeRecord(record, again);
    });
    encoded_ = again.Take();
    return skipped.unknown + skipped.damaged == 0;
  }

  bool Schema(const FrameRef& frame, const std::string& payload) {
    base::ByteWriter records;
    const SkippedRecords skipped =
        ForEachRecordOf(TailFrame{.frame = frame, .payload = payload},
                        [&](model::Record&& record) { EncodeRecord(record, records); });
    if (skipped.unknown + skipped.damaged > 0) return false;
    return EncodeSchemaFrame(records.bytes()) == payload && Records(records.bytes());
  }

  bool Footer(std::string_view payload) {
    base::ByteReader in(payload);
    uint64_t sets = 0, values = 0;
    if (!in.Varint(&sets) || !in.Varint(&values)) return false;
    base::ByteWriter again;
    again.Varint(sets);
    again.Varint(values);
    Line("footer sets={} values={}", sets, values);
    return again.bytes() == payload;
  }

  bool Set(const FileId& id, const std::string& payload) {
    const std::optional<ChunkSet> set = ChunkSetLoader(id, payload).Load();
    if (!set || EncodeChunkSet(id, *set) != payload) return false;
    Line("set tail_generation={} tail_frames={}", set->tail_generation, set->tail_frames);
    const std::pair<SectionKind, const std::string*> sections[] = {
        {SectionKind::kSchema, &set->schema},
        {SectionKind::kEvents, &set->events},
        {SectionKind::kLog, &set->log},
        {SectionKind::kOther, &set->other}};
    for (const auto& [kind, records] : sections) {
      if (records->empty()) continue;
      Line("section kind={}", static_cast<int>(kind));
      if (!Records(*records)) return false;
    }
    Chunks(*set);
    return true;
  }

  void Chunks(const ChunkSet& set) {
    for (const std::vector<int64_t>& times : set.times) Line("times t_ns={}", Integers(times));
    for (const SeriesChunk& chunk : set.series) {
      Line("chunk series={} times={} previous={} raw={}", chunk.series, chunk.times,
           chunk.previous_ns ? fmt::format("{}", *chunk.previous_ns) : "-", Integers(chunk.raw));
    }
  }

  std::string_view bytes_;
  std::string out_;
  std::string encoded_;  // of the records printed last
};

}  // namespace

std::string Dump(std::string_view file_bytes) { return Dumper(file_bytes).Run(); }

}  // namespace epochmeter::runfile
