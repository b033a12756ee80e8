// SPDX-License-Identifier: Apache-2.0
#include "runfile/frame.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/crc32c.h"

namespace epochmeter::runfile {
namespace {

constexpr std::string_view kMagic(
    "\x89"
    "EMR\r\n\x1a\n",
    8);
constexpr std::string_view kMark("\xE7\xC5\x9A\xF3", 4);
constexpr size_t kFirstSearchBytes = size_t{4} << 10;
constexpr size_t kSearchBytes = size_t{1} << 20;
constexpr uint64_t kSectorBytes = 512;

std::string_view IdBytes(const FileId& id) {
  return {reinterpret_cast<const char*>(id.data()), id.size()};
}

uint32_t HeaderCrc(const FileId& id, std::string_view bytes, uint64_t offset) {
  base::ByteWriter place;
  place.U64(offset);
  return base::Crc32c(SeededCrc(id, bytes), place.bytes());
}

}  // namespace

std::string FileIdText(const FileId& id) { return fmt::format("{:02x}", fmt::join(id, "")); }

uint32_t SeededCrc(const FileId& id, std::string_view bytes) {
  return base::Crc32c(base::Crc32c(0, IdBytes(id)), bytes);
}

std::string EncodeFileHeader(const FileHeader& header) {
  base::ByteWriter out;
  out.Raw(kMagic);
  out.U8(static_cast<uint8_t>(header.major));
  out.U8(static_cast<uint8_t>(header.major >> 8));
  out.U8(static_cast<uint8_t>(header.minor));
  out.U8(static_cast<uint8_t>(header.minor >> 8));
  out.U32(static_cast<uint32_t>(header.kind));
  out.Raw(IdBytes(header.id));
  out.U64(header.generation);
  out.Raw(std::string(20, '\0'));
  out.U32(base::Crc32c(0, out.bytes()));
  return out.Take();
}

std::optional<FileHeader> DecodeFileHeader(std::string_view bytes) {
  if (bytes.size() < kFileHeaderBytes || !bytes.starts_with(kMagic)) return {};
  bytes = bytes.substr(0, kFileHeaderBytes);
  base::ByteReader in(bytes.substr(8));
  FileHeader header;
  uint32_t version = 0, kind = 0, crc = 0;
  std::string_view id, zeros;
  const bool complete = in.U32(&version) && in.U32(&kind) && in.Raw(header.id.size(), &id) &&
                        in.U64(&header.generation) && in.Raw(20, &zeros) && in.U32(&crc);
  if (!complete || crc != base::Crc32c(0, bytes.substr(0, 60))) return {};
  header.major = static_cast<uint16_t>(version);
  header.minor = static_cast<uint16_t>(version >> 16);
  header.kind = static_cast<FileKind>(kind);
  std::copy(id.begin(), id.end(), header.id.begin());
  return header;
}

std::string EncodeFrame(FrameHeader header, uint64_t offset, std::string_view payload) {
  base::ByteWriter out;
  out.Reserve(kFrameHeaderBytes + payload.size());
  out.Raw(kMark);
  out.U32(static_cast<uint32_t>(header.type) | static_cast<uint32_t>(header.generation) << 16);
  out.U32(static_cast<uint32_t>(payload.size()));
  out.U32(header.sequence);
  out.Raw(IdBytes(header.id));
  out.U32(SeededCrc(header.id, payload));
  out.U32(HeaderCrc(header.id, out.bytes(), offset));
  out.Raw(payload);
  return out.Take();
}

std::optional<FrameHeader> DecodeFrameHeader(std::string_view bytes, uint64_t offset) {
  if (bytes.size() < kFrameHeaderBytes || !bytes.starts_with(kMark)) return {};
  base::ByteReader in(bytes.substr(4, kFrameHeaderBytes - 4));
  FrameHeader header;
  uint32_t type = 0, crc = 0;
  std::string_view id;
  const bool complete = in.U32(&type) && in.U32(&header.length) && in.U32(&header.sequence) &&
                        in.Raw(header.id.size(), &id) && in.U32(&header.payload_crc) &&
                        in.U32(&crc);
  if (!complete) return {};
  std::copy(id.begin(), id.end(), header.id.begin());
  if (crc != HeaderCrc(header.id, bytes.substr(0, 36), offset)) return {};
  header.type = static_cast<FrameType>(type & 0xFFFF);
  header.generation = static_cast<uint16_t>(type >> 16);
  return header;
}

base::Result<std::optional<std::string>> ReadPayload(const File& file, const FrameRef& frame) {
  EPM_ASSIGN(std::string payload, file.Read(frame.payload_offset(), frame.header.length));
  std::optional<std::string> good;
  if (payload.size() == frame.header.length &&
      SeededCrc(frame.header.id, payload) == frame.header.payload_crc) {
    good = std::move(payload);
  }
  return good;
}

namespace {

// Walks over one file. Foreign ids are not ours: their frames are skipped like any other bytes.
class Scanner {
 public:
  Scanner(const File& file, FileScan& scan) : file_(file), scan_(scan) {}

  base::Result<> Run() {
    uint64_t at = std::min<uint64_t>(scan_.header ? kFileHeaderBytes : 0, scan_.size);
    while (at < scan_.size) {
      EPM_ASSIGN(const std::optional<FrameRef> here, FrameAt(at));
      if (here && !scan_.id) scan_.id = here->header.id;
      if (here && here->end() <= scan_.size) {
        Accept(*here);
        at = here->end();
        continue;
      }
      std::optional<FrameRef> next;
      if (!here) {
        EPM_ASSIGN(next, Search(at + 1));
      }
      const uint64_t stop = next ? next->offset : scan_.size;
      EPM_TRY(Skip(at, stop, here.has_value()));
      at = stop;
    }
    return CheckLastPayload();
  }

 private:
  base::Result<std::optional<FrameRef>> FrameAt(uint64_t at) {
    EPM_ASSIGN(const std::string bytes, file_.Read(at, kFrameHeaderBytes));
    return Judge(bytes, at);
  }

  std::optional<FrameRef> Judge(std::string_view bytes, uint64_t at) const {
    const std::optional<FrameHeader> header = DecodeFrameHeader(bytes, at);
    if (!header || (scan_.id && *scan_.id != header->id)) return {};
    return FrameRef{.offset = at, .header = *header};
  }

  static uint64_t NextSequence(const FrameRef& frame) {
    return uint64_t{frame.header.sequence} + 1;
  }

  void Accept(const FrameRef& frame) {
    scan_.next_sequence = std::max(scan_.next_sequence, NextSequence(frame));
    scan_.frames.push_back(frame);
    scan_.end = frame.end();
  }

  // The first frame at or after `from`. An unfinished one counts: what is appended behind it would
  // be taken for its rest.
  base::Result<std::optional<FrameRef>> Search(uint64_t from) {
    // Small at first: a file may be damaged in many places that are a few bytes long.
    for (size_t bytes = kFirstSearchBytes; from + kFrameHeaderBytes <= scan_.size;
         bytes = std::min(2 * bytes, kSearchBytes)) {
      EPM_ASSIGN(const std::string block, file_.Read(from, bytes));
      if (block.size() < kFrameHeaderBytes) break;
      for (size_t at = block.find(kMark); at != std::string::npos; at = block.find(kMark, at + 1)) {
        if (at + kFrameHeaderBytes > block.size()) break;
        std::optional<FrameRef> frame =
            Judge(std::string_view(block).substr(at, kFrameHeaderBytes), from + at);
        if (frame) return frame;
      }
      from += block.size() - (kFrameHeaderBytes - 1);
    }
    return std::optional<FrameRef>();
  }

  // A torn end: the file stops inside a frame or a header, or is zero from a sector boundary on.
  base::Result<> Skip(uint64_t at, uint64_t stop, bool starts_a_frame) {
    Damage damage{
        .offset = at, .bytes = stop - at, .torn = false, .reason = "no frame starts here"};
    if (at == 0 && !scan_.header) damage.reason = "the file header is damaged";
    if (stop == scan_.size && at > 0) {
      EPM_ASSIGN(const bool zeros, EndsInZeros(at));
      damage.torn = starts_a_frame || zeros || damage.bytes < kFrameHeaderBytes;
      if (damage.torn) damage.reason = "an unfinished frame";
    }
    if (!damage.torn) scan_.end = stop;
    scan_.damages.push_back(std::move(damage));
    return {};
  }

  base::Result<bool> EndsInZeros(uint64_t begin) {
    const uint64_t last_sector = (scan_.size - 1) / kSectorBytes * kSectorBytes;
    const uint64_t from = std::max(begin, last_sector);
    EPM_ASSIGN(const std::string bytes, file_.Read(from, kSectorBytes));
    return bytes.find_first_not_of('\0') == std::string::npos;
  }

  // The header of the last frame may have reached the disk without all of its payload.
  base::Result<> CheckLastPayload() {
    if (scan_.frames.empty() || scan_.frames.back().end() != scan_.size) return {};
    const FrameRef last = scan_.frames.back();
    EPM_ASSIGN(const auto payload, ReadPayload(file_, last));
    if (payload) return {};
    EPM_ASSIGN(const bool zeros, EndsInZeros(last.payload_offset()));
    if (!zeros || last.header.length == 0) return {};
    scan_.frames.pop_back();
    scan_.next_sequence = scan_.frames.empty() ? 0 : NextSequence(scan_.frames.back());
    scan_.end = last.offset;
    scan_.damages.push_back({.offset = last.offset,
                             .bytes = scan_.size - last.offset,
                             .torn = true,
                             .reason = "an unfinished frame"});
    return {};
  }

  const File& file_;
  FileScan& scan_;
};

}  // namespace

base::Result<FileScan> ScanFile(const File& file, const std::optional<FileId>& fallback_id) {
  FileScan scan;
  scan.path = file.path();
  EPM_ASSIGN(scan.size, file.Size());
  EPM_ASSIGN(const std::string head, file.Read(0, kFileHeaderBytes));
  scan.header = DecodeFileHeader(head);
  if (scan.header) scan.id = scan.header->id;
  scan.end = std::min<uint64_t>(kFileHeaderBytes, scan.size);
  EPM_TRY(Scanner(file, scan).Run());
  // Last: with the same frames the file has the same id when the one that gave this is gone.
  if (!scan.id) scan.id = fallback_id;
  return scan;
}

}  // namespace epochmeter::runfile
