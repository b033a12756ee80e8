// SPDX-License-Identifier: Apache-2.0
// File headers, frames, and the scan that finds the frames of a file whatever happened to it
// (FORMAT.md, "File header" and "Frame").
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runfile/file_system.h"

namespace epochmeter::runfile {

using FileId = std::array<uint8_t, 16>;
std::string FileIdText(const FileId& id);  // 32 hex digits
// CRC-32C that starts from the id.
uint32_t SeededCrc(const FileId& id, std::string_view bytes);

enum class FileKind : uint32_t { kMain = 1, kTail = 2 };
inline constexpr uint16_t kMajorVersion = 1;
inline constexpr uint16_t kMinorVersion = 0;
inline constexpr size_t kFileHeaderBytes = 64;
inline constexpr size_t kFrameHeaderBytes = 40;

struct FileHeader {
  uint16_t major = kMajorVersion;
  uint16_t minor = kMinorVersion;
  FileKind kind = FileKind::kMain;
  FileId id{};
  uint64_t generation = 0;
};
std::string EncodeFileHeader(const FileHeader& header);
// Nothing for bytes that are not a header with a right checksum.
std::optional<FileHeader> DecodeFileHeader(std::string_view bytes);

enum class FrameType : uint16_t { kRecords = 1, kChunkSet = 2, kFooter = 3, kSchema = 4 };

struct FrameHeader {
  FrameType type = FrameType::kRecords;  // may be one we don't know
  uint32_t length = 0;
  uint32_t sequence = 0;
  uint16_t generation = 0;  // low bits of the tail's generation; 0 in a main file
  FileId id{};
  uint32_t payload_crc = 0;
};
// Fills in length and checksum. `offset` is where the frame will stand in its file.
std::string EncodeFrame(FrameHeader header, uint64_t offset, std::string_view payload);
// `bytes` begin at `offset` of the file. Nothing when they are no valid frame header there.
std::optional<FrameHeader> DecodeFrameHeader(std::string_view bytes, uint64_t offset);

struct FrameRef {
  uint64_t offset = 0;
  FrameHeader header;
  uint64_t payload_offset() const { return offset + kFrameHeaderBytes; }
  uint64_t end() const { return payload_offset() + header.length; }
};

// A part of the file that is no frame of ours. `torn`: an unfinished end, which is no damage.
struct Damage {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  bool torn = false;
  std::string reason;
};

struct FileScan {
  std::optional<FileHeader> header;  // as read; nothing when damaged
  std::optional<FileId> id;          // from the header, else from the first frame
  std::vector<FrameRef> frames;
  std::vector<Damage> damages;  // in order of offset
  uint64_t size = 0;
  uint64_t next_sequence = 0;  // 2^32 behind a last one of all ones
  // Where the next frame goes: behind all that is not a torn end.
  uint64_t end = 0;
  std::string path;
};

// Reads headers only, besides the last payload's checksum, which tells a torn end. `fallback_id`
// is used when the file's own header is damaged. Fails only when the file can't be read.
base::Result<FileScan> ScanFile(const File& file, const std::optional<FileId>& fallback_id = {});

// The payload, if its checksum is right.
base::Result<std::optional<std::string>> ReadPayload(const File& file, const FrameRef& frame);

}  // namespace epochmeter::runfile
