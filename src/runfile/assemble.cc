// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "base/bytes.h"
#include "base/strings.h"
#include "runfile/chunk_set.h"
#include "runfile/dump.h"
#include "runfile/record_codec.h"
#include "runfile/record_text.h"
#include "runfile/run_files.h"

namespace epochmeter::runfile {
namespace {

// "word key=value key=value": the values by key. None of them has spaces.
class Line {
 public:
  explicit Line(std::string_view text) {
    const std::vector<std::string_view> parts = base::Split(text, ' ');
    word_ = parts.front();
    for (size_t i = 1; i < parts.size(); ++i) {
      const size_t equals = std::min(parts[i].find('='), parts[i].size());
      values_.emplace(parts[i].substr(0, equals),
                      parts[i].substr(std::min(equals + 1, parts[i].size())));
    }
  }

  std::string_view word() const { return word_; }
  std::string_view Text(std::string_view key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? std::string_view() : found->second;
  }
  template <typename T>
  bool Integer(std::string_view key, T* value) const {
    const std::optional<uint64_t> wide = base::ParseUint(Text(key));
    if (!wide || *wide > std::numeric_limits<T>::max()) return false;
    *value = static_cast<T>(*wide);
    return true;
  }
  bool Id(FileId* id) const {
    std::string bytes;
    if (!BytesFromHex(Text("id"), &bytes) || bytes.size() != id->size()) return false;
    std::copy(bytes.begin(), bytes.end(), id->begin());
    return true;
  }

 private:
  std::string_view word_;
  std::map<std::string_view, std::string_view> values_;
};

bool Integers(std::string_view text, std::vector<int64_t>* values) {
  uint64_t sum = 0;
  for (const std::string_view part : base::Split(text, ',')) {
    const std::optional<int64_t> difference = base::ParseInt(part);
    if (!difference) return false;
    sum += static_cast<uint64_t>(*difference);
    values->push_back(static_cast<int64_t>(sum));
  }
  return !values->empty() && values->size() <= kMaxColumnValues;
}

class Assembler {
 public:
  base::Result<std::string> Run(std::string_view text) {
    size_t number = 0;
    for (const std::string_view line : base::Split(text, '\n')) {
      ++number;
      if (number == 1) {
        EPM_TRY(CheckFirstLine(line));
      } else if (!line.empty() && !Take(line)) {
        return base::Error{.what = "not the text of a run file",
                           .where = fmt::format("line {}", number),
                           .why = std::string(line.substr(0, 80)),
                           .what_to_do = "dump the file again"};
      }
    }
    EndFrame();
    return std::move(out_);
  }

 private:
  base::Result<> CheckFirstLine(std::string_view line) {
    const std::string expected = fmt::format("emr-text 1 zstd={}", ZSTD_versionNumber());
    if (line == expected) return {};
    return base::Error{.what = "the text was made by another version",
                       .where = "line 1",
                       .why = fmt::format("\"{}\", expected \"{}\"", line.substr(0, 80), expected),
                       .what_to_do = "assemble it with the program that dumped it"};
  }

  bool Take(std::string_view text) {
    // Records have quoted texts and their own grammar; all else is words and integers.
    const std::string_view word = text.substr(0, text.find(' '));
    for (const std::string_view ours :
         {"header", "frame", "damaged", "payload", "footer", "set", "section", "times", "chunk"}) {
      if (word == ours) return TakeOurs(Line(text));
    }
    model::Record record;
    if (!frame_ || !RecordFromText(text, &record)) return false;
    if (records_ == &set_.events && !std::holds_alternative<model::Event>(record)) return false;
    if (const auto* series = std::get_if<model::SeriesDef>(&record)) series_[series->id] = *series;
    base::ByteWriter encoded;
    EncodeRecord(record, encoded);
    *records_ += encoded.bytes();
    return true;
  }

  bool TakeOurs(const Line& line) {
    if (line.word() == "header") return Header(line);
    if (line.word() == "frame") return BeginFrame(line);
    if (line.word() == "damaged") return Damaged(line);
    if (!frame_) return false;
    if (line.word() == "payload") return BytesFromHex(line.Text("hex"), &payload_.emplace());
    if (line.word() == "footer") return Footer(line);
    if (line.word() == "set") {
      return line.Integer("tail_generation", &set_.tail_generation) &&
             line.Integer("tail_frames", &set_.tail_frames);
    }
    if (line.word() == "section") return Section(line);
    if (line.word() == "times") return Integers(line.Text("t_ns"), &set_.times.emplace_back());
    return Chunk(line);
  }

  bool Header(const Line& line) {
    FileHeader header;
    uint32_t kind = 0;
    if (!line.Integer("major", &header.major) || !line.Integer("minor", &header.minor) ||
        !line.Integer("kind", &kind) || !line.Integer("generation", &header.generation) ||
        !line.Id(&header.id)) {
      return false;
    }
    header.kind = static_cast<FileKind>(kind);
    out_ += EncodeFileHeader(header);
    return true;
  }

  bool BeginFrame(const Line& line) {
    EndFrame();
    FrameHeader header;
    uint16_t type = 0;
    if (!line.Integer("type", &type) || !line.Integer("generation", &header.generation) ||
        !line.Integer("sequence", &header.sequence) || !line.Id(&header.id)) {
      return false;
    }
    header.type = static_cast<FrameType>(type);
    frame_ = header;
    return true;
  }

  bool Damaged(const Line& line) {
    EndFrame();
    std::string bytes;
    if (!BytesFromHex(line.Text("hex"), &bytes)) return false;
    out_ += bytes;
    return true;
  }

  bool Footer(const Line& line) {
    uint64_t sets = 0, values = 0;
    if (!line.Integer("sets", &sets) || !line.Integer("values", &values)) return false;
    base::ByteWriter bytes;
    bytes.Varint(sets);
    bytes.Varint(values);
    payload_ = bytes.Take();
    return true;
  }

  bool Section(const Line& line) {
    uint8_t kind = 0;
    if (!line.Integer("kind", &kind) || kind < 1 || kind > 4) return false;
    std::string* const parts[] = {&set_.schema, &set_.events, &set_.log, &set_.other};
    records_ = parts[kind - 1];
    return true;
  }

  bool Chunk(const Line& line) {
    SeriesChunk& chunk = set_.series.emplace_back();
    uint64_t times = 0;
    if (!line.Integer("series", &chunk.series) || !line.Integer("times", &times)) return false;
    const auto def = series_.find(chunk.series);
    if (times >= set_.times.size() || def == series_.end()) return false;
    chunk.resolution = def->second.metric.resolution;
    chunk.period_ns = def->second.period_ns;
    chunk.times = static_cast<size_t>(times);
    if (line.Text("previous") != "-") {
      chunk.previous_ns = base::ParseInt(line.Text("previous"));
      if (!chunk.previous_ns) return false;
    }
    return Integers(line.Text("raw"), &chunk.raw) &&
           chunk.raw.size() == set_.times[chunk.times].size();
  }

  void EndFrame() {
    if (!frame_) return;
    if (!payload_) {
      switch (frame_->type) {
        case FrameType::kChunkSet:
          payload_ = EncodeChunkSet(frame_->id, set_);
          break;
        case FrameType::kSchema:
          payload_ = EncodeSchemaFrame(plain_);
          break;
        default:
          payload_ = plain_;
      }
    }
    out_ += EncodeFrame(*frame_, out_.size(), *payload_);
    frame_.reset();
    payload_.reset();
    plain_.clear();
    set_ = {};
    series_.clear();
    records_ = &plain_;
  }

  std::string out_;
  std::optional<FrameHeader> frame_;    // being assembled
  std::optional<std::string> payload_;  // when it is given as a whole
  std::string plain_;                   // records of a frame without sections
  ChunkSet set_;
  std::string* records_ = &plain_;  // where the next record goes
  std::map<model::SeriesId, model::SeriesDef> series_;
};

}  // namespace

base::Result<std::string> Assemble(std::string_view text) { return Assembler().Run(text); }

}  // namespace epochmeter::runfile
