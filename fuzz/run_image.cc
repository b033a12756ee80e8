// SPDX-License-Identifier: Apache-2.0
#include "fuzz/run_image.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "runfile/chunk_set.h"
#include "runfile/frame.h"
#include "runfile/run_files.h"

namespace epochmeter::fuzz {
namespace {

using runfile::FileId;

void PutU32(std::string* bytes, size_t at, uint32_t value) {
  std::memcpy(bytes->data() + at, &value, sizeof value);
}

const std::string& Magic() {
  static const std::string magic = runfile::EncodeFileHeader({}).substr(0, 8);
  return magic;
}

const std::string& Mark() {
  static const std::string mark = runfile::EncodeFrame({}, 0, {}).substr(0, 4);
  return mark;
}

// A chunk set's prologue as FORMAT.md has it, with where the parts of it stand that are mended.
struct Section {
  uint8_t kind = 0;
  uint64_t bytes = 0;
  size_t crc_at = 0;  // in the payload
};

std::vector<Section> ReadSections(std::string_view payload, size_t prologue_bytes) {
  std::vector<Section> sections;
  base::ByteReader in(payload.substr(8, prologue_bytes));
  uint64_t skipped = 0, count = 0;
  for (int i = 0; i < 5; ++i) {
    if (!in.Varint(&skipped)) return sections;
  }
  if (!in.Varint(&count)) return sections;
  for (uint64_t i = 0; i < count; ++i) {
    Section section;
    uint32_t crc = 0;
    const bool whole = in.U8(&section.kind) && in.Varint(&section.bytes) && in.Varint(&skipped) &&
                       in.Varint(&skipped);
    section.crc_at = 8 + prologue_bytes - in.remaining();
    if (!whole || !in.U32(&crc)) return sections;
    sections.push_back(section);
  }
  return sections;
}

void RepairChunkSet(const FileId& id, std::string* payload) {
  if (payload->size() < 8) return;
  uint32_t prologue_bytes = 0;
  std::memcpy(&prologue_bytes, payload->data(), sizeof prologue_bytes);
  if (prologue_bytes > payload->size() - 8) return;
  size_t at = 8 + prologue_bytes;
  for (const Section& section : ReadSections(*payload, prologue_bytes)) {
    if (section.bytes > payload->size() - at) break;
    const std::string_view stored = std::string_view(*payload).substr(at, section.bytes);
    if (section.kind != static_cast<uint8_t>(runfile::SectionKind::kData)) {
      PutU32(payload, section.crc_at, runfile::SeededCrc(id, stored));
    }
    at += stored.size();
  }
  const std::string_view prologue = std::string_view(*payload).substr(8, prologue_bytes);
  PutU32(payload, 4, runfile::SeededCrc(id, prologue));
}

// The end of the frame at `at`; nothing when none is there.
std::optional<size_t> RepairFrame(size_t at, std::string* file) {
  if (file->size() - at < runfile::kFrameHeaderBytes) return {};
  base::ByteReader in(std::string_view(*file).substr(at + 4));
  runfile::FrameHeader header;
  uint32_t type = 0;
  std::string_view id;
  if (!in.U32(&type) || !in.U32(&header.length) || !in.U32(&header.sequence)) return {};
  if (!in.Raw(header.id.size(), &id)) return {};
  std::copy(id.begin(), id.end(), header.id.begin());
  header.type = static_cast<runfile::FrameType>(type & 0xFFFF);
  header.generation = static_cast<uint16_t>(type >> 16);
  const size_t begin = at + runfile::kFrameHeaderBytes;
  if (header.length > file->size() - begin) return {};
  std::string payload = file->substr(begin, header.length);
  if (header.type == runfile::FrameType::kChunkSet) RepairChunkSet(header.id, &payload);
  file->replace(at, runfile::kFrameHeaderBytes + payload.size(),
                runfile::EncodeFrame(header, at, payload));
  return begin + payload.size();
}

}  // namespace

std::string RepairChecksums(std::string file) {
  if (file.size() >= runfile::kFileHeaderBytes && file.starts_with(Magic())) {
    PutU32(&file, 60, base::Crc32c(0, std::string_view(file).substr(0, 60)));
  }
  size_t at = file.find(Mark());
  while (at != std::string::npos) {
    at = file.find(Mark(), RepairFrame(at, &file).value_or(at + 1));
  }
  return file;
}

void MakeRunFiles(std::string_view bytes, runfile::MemoryFileSystem* files) {
  const bool as_they_are = !bytes.empty() && (bytes.front() & 1) != 0;
  bytes.remove_prefix(std::min<size_t>(1, bytes.size()));
  const size_t tail_at = std::min(bytes.find(Magic(), 1), bytes.size());
  const auto make = [&](const std::string& path, std::string_view content) {
    files->SetBytes(path,
                    as_they_are ? std::string(content) : RepairChecksums(std::string(content)));
  };
  make(kRunPath, bytes.substr(0, tail_at));
  if (tail_at < bytes.size()) make(runfile::TailPath(kRunPath), bytes.substr(tail_at));
}

}  // namespace epochmeter::fuzz
