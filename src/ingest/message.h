// SPDX-License-Identifier: Apache-2.0
// One datagram of the event protocol (docs/protocol.md), understood: the text checked field by
// field, without memory of what came before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ingest/allocator.h"
#include "ingest/json_text.h"
#include "model/record.h"

namespace epochmeter::ingest {

inline constexpr size_t kMaxDatagramBytes = 8192;

// Why a datagram is refused, in the order of the tests.
enum class Refusal : uint8_t {
  kNone,
  kTooLong,
  kNotUtf8,
  kNotJson,
  kNotObject,
  kTooDeep,
  kBadVersion,
  kBadKind,
  kMissingField,
  kUnknownKind
};
inline constexpr int kRefusalCount = 10;
std::string_view RefusalName(Refusal refusal);  // "too_long"

// `event` has the flat form of the model: scalars as "scalar.<name>", versions as "version.<name>",
// booleans as 0 and 1, `phase`, `type` and `name` as its name. "gpus" is one text, an item a GPU
// with commas between: its UUID, else its PCI bus id, else "framework:<index>".
struct Message {
  model::Event event;
  int64_t pid = 0;
  int64_t seq = 0;
  std::optional<int64_t> dropped;
  std::optional<AllocatorReading> memory;
  uint32_t bad_fields = 0;
};

// One thread. Reuses its buffers.
class MessageParser {
 public:
  MessageParser() : json_(JsonDialect::kStrict) {}

  // Fills `message` on kNone; else what it holds means nothing.
  Refusal Parse(std::string_view datagram, Message* message);

 private:
  using Entries = std::vector<std::pair<std::string_view, JsonElement>>;
  struct Kind;
  struct Field;
  struct Table;  // of the kinds
  enum class Type : uint8_t;

  static const Kind* FindKind(std::string_view name);
  // The members without null; of a key that comes twice the last value, at its first place.
  static void Collect(JsonObject object, Entries& entries);
  const JsonElement* Get(std::string_view key) const;

  bool ReadCommon();
  bool ReadKind(const Kind& kind);
  // False when the value is not of the field's type.
  bool ReadField(const Field& field, JsonElement value);
  bool ReadNumber(const Field& field, JsonElement value);
  bool ReadText(const Field& field, JsonElement value);
  bool ReadScalars(JsonElement value);
  bool ReadVersions(JsonElement value);
  bool ReadGpus(JsonElement value);
  bool ReadMemory(const Entries& members);
  void AddField(std::string_view key, model::FieldValue value);

  JsonParser json_;
  Entries fields_;
  Entries inner_;
  Message* out_ = nullptr;
};

}  // namespace epochmeter::ingest
