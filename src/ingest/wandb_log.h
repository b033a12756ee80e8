// SPDX-License-Identifier: Apache-2.0
// The bytes of a W&B `.wandb` file: a header, then blocks of 32 KiB with records cut into pieces,
// each piece with its length, kind and CRC-32; a record is one Protocol Buffers message.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace epochmeter::ingest {

inline constexpr std::string_view kWandbMagic = ":W&B";

// Borrows the bytes of the whole file.
class WandbLog {
 public:
  // kBad: a piece was damaged; reading goes on at the next block.
  enum class Next : uint8_t { kRecord, kBad, kEnd };

  explicit WandbLog(std::string_view bytes) : bytes_(bytes) {}
  static bool HasHeader(std::string_view bytes);

  // `record` is good until the next call.
  Next Read(std::string_view* record);
  size_t offset() const { return at_; }

 private:
  bool ReadPiece(std::string_view* piece, uint8_t* kind);
  void SkipBlock();

  std::string_view bytes_;
  size_t at_ = 7;  // behind the header
  std::string record_;
};

// Fields of a Protocol Buffers message, one after the other. Borrows the bytes.
class ProtoFields {
 public:
  explicit ProtoFields(std::string_view bytes) : rest_(bytes) {}

  // False at the end and on damage; then good() tells which.
  bool Next();
  bool good() const { return good_; }
  uint32_t number() const { return number_; }
  // Of a varint; 0 for any other kind of field.
  uint64_t integer() const { return integer_; }
  // Of a text or message; empty for any other kind of field.
  std::string_view bytes() const { return bytes_; }

 private:
  std::string_view rest_, bytes_;
  uint64_t integer_ = 0;
  uint32_t number_ = 0;
  bool good_ = true;
};

}  // namespace epochmeter::ingest
