// SPDX-License-Identifier: Apache-2.0
// Hostile content of a chunk set with everything around it right: sections are compressed and
// checksummed here, and so is each column that a directory places. Whatever opens has columns in
// order and no value that the bytes don't hold.
#include <algorithm>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "fuzz/input.h"
#include "fuzz/output.h"
#include "fuzz/run_image.h"
#include "fuzz/target.h"
#include "runfile/chunk_set.h"
#include "runfile/column_codec.h"
#include "runfile/run_reader.h"

namespace epochmeter::fuzz {
namespace {

using runfile::FileId;
using runfile::SectionKind;

struct Column {
  uint8_t encoding;
  std::string stored;
};

// Byte planes of the fuzzer, compressed, so that the decoder behind zstd gets them.
Column ReadColumn(Input& in) {
  const uint8_t encoding = in.Byte();
  const bool raw = in.Bit();
  const std::string_view bytes = in.Text();
  return {encoding, raw ? std::string(bytes) : runfile::Compress(bytes)};
}

void PutPart(const FileId& id, const Column& column, base::ByteWriter& directory,
             base::ByteWriter& data) {
  directory.U8(column.encoding);
  directory.Varint(column.stored.size());
  directory.U32(runfile::SeededCrc(id, column.stored));
  data.Raw(column.stored);
}

// One to four time columns and up to eight chunks.
void MakeSeries(const FileId& id, Input& in, base::ByteWriter& directory, base::ByteWriter& data) {
  const size_t times = 1 + in.Below(4), chunks = in.Below(8);
  directory.Varint(times);
  for (size_t i = 0; i < times; ++i) {
    directory.Varint(in.Number(1 + in.Below(3)));
    directory.Signed(static_cast<int64_t>(in.Number(1 + in.Below(8))));
    directory.Varint(in.Number(1 + in.Below(8)));
    PutPart(id, ReadColumn(in), directory, data);
  }
  directory.Varint(chunks);
  for (size_t i = 0; i < chunks; ++i) {
    directory.Varint(in.Number(1 + in.Below(4)));
    directory.Varint(in.Below(5));
    PutPart(id, ReadColumn(in), directory, data);
    const bool previous = in.Bit();
    directory.U8(previous ? 1 : 0);
    if (previous) directory.Signed(static_cast<int64_t>(in.Number(8)));
    for (int k = 0; k < 4; ++k) directory.Signed(static_cast<int64_t>(in.Number(1 + in.Below(8))));
    for (int k = 0; k < 3; ++k) directory.U64(in.Number(8));
  }
}

struct Section {
  SectionKind kind;
  uint64_t raw_bytes;
  std::string stored;
};

std::vector<Section> MakeSections(const FileId& id, Input& in) {
  std::vector<Section> sections;
  const auto add = [&sections](SectionKind kind, std::string_view content) {
    sections.push_back({kind, content.size(), runfile::Compress(content)});
  };
  const size_t count = in.Below(6);
  for (size_t i = 0; i < count; ++i) {
    const auto kind = static_cast<SectionKind>(1 + in.Below(7));
    if (kind != SectionKind::kDirectory) {
      add(kind, in.Take(in.Number(2)));
      continue;
    }
    base::ByteWriter directory, data;
    MakeSeries(id, in, directory, data);
    add(SectionKind::kDirectory, directory.bytes());
    sections.push_back({SectionKind::kData, data.size(), data.bytes()});
  }
  return sections;
}

std::string MakePayload(const FileId& id, Input& in) {
  base::ByteWriter prologue;
  prologue.Varint(in.Below(3));
  prologue.Varint(in.Below(3));
  prologue.Signed(static_cast<int64_t>(in.Number(8)));
  prologue.Signed(static_cast<int64_t>(in.Number(8)));
  prologue.Varint(in.Number(2));
  const std::vector<Section> sections = MakeSections(id, in);
  prologue.Varint(sections.size());
  for (const Section& section : sections) {
    prologue.U8(static_cast<uint8_t>(section.kind));
    prologue.Varint(section.stored.size());
    prologue.Varint(section.raw_bytes);
    prologue.Varint(1);
    prologue.U32(section.kind == SectionKind::kData ? 0 : runfile::SeededCrc(id, section.stored));
  }
  base::ByteWriter payload;
  payload.U32(static_cast<uint32_t>(prologue.size()));
  payload.U32(runfile::SeededCrc(id, prologue.bytes()));
  payload.Raw(prologue.bytes());
  for (const Section& section : sections) payload.Raw(section.stored);
  return payload.Take();
}

}  // namespace

void FeedChunks(std::string_view bytes) {
  Input in(bytes);
  const FileId id{1};
  std::string file = runfile::EncodeFileHeader({.id = id});
  const size_t sets = 1 + in.Below(3);
  for (uint32_t i = 0; i < sets; ++i) {
    const std::string payload = MakePayload(id, in);
    file += runfile::EncodeFrame({.type = runfile::FrameType::kChunkSet, .sequence = i, .id = id},
                                 file.size(), payload);
  }
  runfile::MemoryFileSystem files;
  files.SetBytes(kRunPath, file);
  const auto run = runfile::OpenRun(kRunPath, &files);
  EPM_CHECK(run.ok()) << run.error().Message();
  CheckStore(*run);
  EPM_CHECK(runfile::VerifyRun(kRunPath, &files).ok());
}

}  // namespace epochmeter::fuzz
