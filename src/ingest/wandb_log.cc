// SPDX-License-Identifier: Apache-2.0
#include "ingest/wandb_log.h"

#include <zlib.h>

#include <algorithm>

#include "base/bytes.h"

namespace epochmeter::ingest {
namespace {

constexpr size_t kBlockBytes = 32768;
constexpr size_t kPieceHeaderBytes = 7;
constexpr size_t kMostRecordBytes = size_t{64} << 20;

// What a piece is of its record.
enum Kind : uint8_t { kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

uint32_t ReadLittle(std::string_view bytes, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    value |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
  }
  return value;
}

}  // namespace

// The magic number is the low half of the CRC-32 of the product's name; the version is 0.
bool WandbLog::HasHeader(std::string_view bytes) {
  return bytes.size() >= 7 && bytes.substr(0, 4) == kWandbMagic &&
         ReadLittle(bytes, 4, 2) == 0xBEE1 && bytes[6] == 0;
}

void WandbLog::SkipBlock() { at_ = std::min(bytes_.size(), (at_ / kBlockBytes + 1) * kBlockBytes); }

// False when the piece is damaged; `kind` 0 is the end of the file.
bool WandbLog::ReadPiece(std::string_view* piece, uint8_t* kind) {
  *kind = 0;
  const size_t left_in_block = kBlockBytes - at_ % kBlockBytes;
  if (left_in_block < kPieceHeaderBytes) SkipBlock();
  if (at_ >= bytes_.size()) return true;
  const size_t block_end = std::min(bytes_.size(), (at_ / kBlockBytes + 1) * kBlockBytes);
  if (block_end - at_ < kPieceHeaderBytes) return false;
  const uint32_t crc = ReadLittle(bytes_, at_, 4);
  const size_t length = ReadLittle(bytes_, at_ + 4, 2);
  if (length > block_end - at_ - kPieceHeaderBytes) return false;
  const std::string_view checked = bytes_.substr(at_ + 6, length + 1);
  const auto* data = reinterpret_cast<const Bytef*>(checked.data());
  if (crc32(0, data, static_cast<uInt>(checked.size())) != crc) return false;
  *kind = static_cast<uint8_t>(bytes_[at_ + 6]);
  *piece = checked.substr(1);
  at_ += kPieceHeaderBytes + length;
  return *kind >= kFull && *kind <= kLast;
}

WandbLog::Next WandbLog::Read(std::string_view* record) {
  bool open = false;
  while (true) {
    std::string_view piece;
    uint8_t kind = 0;
    if (!ReadPiece(&piece, &kind)) {
      SkipBlock();
      return Next::kBad;
    }
    // A record without its end: the program that wrote it died.
    if (kind == 0) return open ? Next::kBad : Next::kEnd;
    if (kind == kFull && !open) {
      *record = piece;
      return Next::kRecord;
    }
    if ((kind == kFirst) == open || kind == kFull) return Next::kBad;
    if (kind == kFirst) record_.clear();
    if (record_.size() + piece.size() > kMostRecordBytes) return Next::kBad;
    record_ += piece;
    open = true;
    if (kind != kLast) continue;
    *record = record_;
    return Next::kRecord;
  }
}

bool ProtoFields::Next() {
  integer_ = 0;
  bytes_ = {};
  if (rest_.empty()) return false;
  base::ByteReader reader(rest_);
  uint64_t key = 0;
  uint64_t size = 0;
  good_ = reader.Varint(&key) && key >> 3 > 0 && key >> 3 <= 0x1FFFFFFF;
  if (!good_) return false;
  number_ = static_cast<uint32_t>(key >> 3);
  std::string_view skipped;
  switch (key & 7) {
    case 0:
      good_ = reader.Varint(&integer_);
      break;
    case 1:
      good_ = reader.Raw(8, &skipped);
      break;
    case 2:
      good_ = reader.Varint(&size) && size <= reader.remaining() &&
              reader.Raw(static_cast<size_t>(size), &bytes_);
      break;
    case 5:
      good_ = reader.Raw(4, &skipped);
      break;
    default:
      good_ = false;
  }
  if (good_) rest_.remove_prefix(rest_.size() - reader.remaining());
  return good_;
}

}  // namespace epochmeter::ingest
