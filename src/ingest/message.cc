// SPDX-License-Identifier: Apache-2.0
#include "ingest/message.h"

#include <algorithm>
#include <array>
#include <limits>

namespace epochmeter::ingest {
namespace {

using model::EventKind;

constexpr size_t kMaxText = 2000;  // characters
constexpr size_t kMaxTraceback = 4000;
constexpr size_t kMaxNameBytes = 200;
constexpr size_t kMaxScalars = 256;
constexpr size_t kMaxGpus = 64;

constexpr std::array<std::string_view, kAllocatorMetricCount> kMemoryMembers = {
    "allocated_bytes",    "reserved_bytes", "max_allocated_bytes",
    "max_reserved_bytes", "alloc_retries",  "ooms"};

// The first `count` characters of valid UTF-8.
std::string_view FirstCharacters(std::string_view text, size_t count) {
  if (text.size() <= count) return text;
  size_t seen = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const bool starts = (static_cast<unsigned char>(text[at]) & 0xC0) != 0x80;
    if (starts && seen++ == count) return text.substr(0, at);
  }
  return text;
}

bool IsName(std::string_view text) { return !text.empty() && text.size() <= kMaxNameBytes; }

}  // namespace

// kName is a text of 1 to 200 bytes; kTitle any text that becomes the name of the event.
enum class MessageParser::Type : uint8_t {
  kInt,
  kCount,     // int >= 0
  kDuration,  // number >= 0
  kBool,
  kText,
  kTraceback,
  kName,
  kTitle,
  kScalars,
  kVersions,
  kGpus,
  kMemory
};

struct MessageParser::Field {
  std::string_view key;
  Type type = Type::kInt;
  bool required = false;
};

struct MessageParser::Kind {
  std::string_view name;
  EventKind kind;
  std::array<Field, 10> fields;  // unused ones have no key
};

std::string_view RefusalName(Refusal refusal) {
  constexpr std::array<std::string_view, kRefusalCount> kNames = {
      "none",     "too_long",    "not_utf8", "not_json",      "not_object",
      "too_deep", "bad_version", "bad_kind", "missing_field", "unknown_kind"};
  return kNames[static_cast<size_t>(refusal)];
}

// As in the table of docs/protocol.md, the frequent one first.
struct MessageParser::Table {
  static constexpr Field kEpoch{"epoch", Type::kInt};
  static constexpr Field kStep{"step", Type::kInt};
  static constexpr Field kTheEpoch{"epoch", Type::kInt, true};
  static constexpr Field kDurationS{"duration_s", Type::kDuration};
  static constexpr Field kScalars{"scalars", Type::kScalars};
  static constexpr Field kGpus{"gpus", Type::kGpus};
  static constexpr Field kFramework{"framework", Type::kText};
  static constexpr std::array<Kind, 12> kKinds = {{
      {"step",
       EventKind::kStep,
       {{{"step", Type::kCount, true},
         kEpoch,
         {"step_in_epoch", Type::kInt},
         {"steps", Type::kCount},
         kDurationS,
         {"data_wait_s", Type::kDuration},
         {"batch_size", Type::kCount},
         {"partial", Type::kBool},
         kScalars,
         {"memory", Type::kMemory}}}},
      {"hello",
       EventKind::kHello,
       {{{"wall_ns", Type::kInt, true},
         kFramework,
         {"versions", Type::kVersions},
         {"argv0", Type::kText},
         {"local_rank", Type::kInt},
         {"world", Type::kInt},
         {"rank_source", Type::kText},
         kGpus}}},
      {"train_begin",
       EventKind::kTrainBegin,
       {{kFramework,
         {"source", Type::kText},
         {"epochs", Type::kInt},
         {"steps_per_epoch", Type::kInt},
         {"batch_size", Type::kInt},
         {"epoch_base", Type::kInt},
         kGpus}}},
      {"train_end",
       EventKind::kTrainEnd,
       {{{"status", Type::kText},
         {"type", Type::kTitle},
         {"message", Type::kText},
         kEpoch,
         kStep}}},
      {"epoch_begin",
       EventKind::kEpochBegin,
       {{kTheEpoch, {"epoch_base", Type::kInt}, {"epoch_from", Type::kText}}}},
      {"epoch_end",
       EventKind::kEpochEnd,
       {{kTheEpoch, kDurationS, {"steps", Type::kInt}, {"partial", Type::kBool}, kScalars}}},
      {"phase_begin", EventKind::kPhaseBegin, {{{"phase", Type::kName, true}, kEpoch, kStep}}},
      {"phase_end",
       EventKind::kPhaseEnd,
       {{{"phase", Type::kName, true},
         kDurationS,
         kEpoch,
         kStep,
         {"failed", Type::kBool},
         kScalars}}},
      {"memory", EventKind::kMemory, {{{"framework", Type::kText, true}}}},
      {"scalar", EventKind::kScalar, {{{"scalars", Type::kScalars, true}, kEpoch, kStep}}},
      {"exception",
       EventKind::kException,
       {{{"type", Type::kTitle, true},
         {"message", Type::kText},
         {"traceback", Type::kTraceback},
         kEpoch,
         kStep}}},
      {"mark", EventKind::kMark, {{{"name", Type::kName, true}, kEpoch, kStep}}},
  }};
};

const MessageParser::Kind* MessageParser::FindKind(std::string_view name) {
  const auto found = std::find_if(Table::kKinds.begin(), Table::kKinds.end(),
                                  [name](const Kind& kind) { return kind.name == name; });
  return found == Table::kKinds.end() ? nullptr : &*found;
}

void MessageParser::Collect(JsonObject object, Entries& entries) {
  entries.clear();
  for (const auto field : object) {
    const auto same = [&field](const auto& entry) { return entry.first == field.key; };
    const auto known = std::find_if(entries.begin(), entries.end(), same);
    if (known != entries.end()) entries.erase(known);
    entries.emplace_back(field.key, field.value);
  }
  std::erase_if(entries, [](const auto& entry) { return entry.second.is_null(); });
}

const JsonElement* MessageParser::Get(std::string_view key) const {
  for (const auto& entry : fields_) {
    if (entry.first == key) return &entry.second;
  }
  return nullptr;
}

void MessageParser::AddField(std::string_view key, model::FieldValue value) {
  out_->event.fields.push_back({.key = std::string(key), .value = std::move(value)});
}

Refusal MessageParser::Parse(std::string_view datagram, Message* message) {
  *message = Message{};
  out_ = message;
  if (datagram.size() > kMaxDatagramBytes) return Refusal::kTooLong;
  JsonObject object;
  switch (json_.Parse(datagram, &object)) {
    case JsonFault::kNotUtf8:
      return Refusal::kNotUtf8;
    case JsonFault::kNotJson:
      return Refusal::kNotJson;
    case JsonFault::kNotObject:
      return Refusal::kNotObject;
    case JsonFault::kTooDeep:
      return Refusal::kTooDeep;
    case JsonFault::kNone:
      break;
  }
  Collect(object, fields_);
  const JsonElement* version = Get("v");
  if (version == nullptr || IntOf(*version) != 1) return Refusal::kBadVersion;
  const JsonElement* kind_field = Get("kind");
  const auto kind_name = kind_field ? TextOf(*kind_field) : std::nullopt;
  if (!kind_name || kind_name->empty()) return Refusal::kBadKind;
  if (!ReadCommon()) return Refusal::kMissingField;
  const Kind* kind = FindKind(*kind_name);
  if (kind == nullptr) return Refusal::kUnknownKind;
  return ReadKind(*kind) ? Refusal::kNone : Refusal::kMissingField;
}

bool MessageParser::ReadCommon() {
  const auto integer = [this](std::string_view key, int64_t least, int64_t most) {
    const JsonElement* value = Get(key);
    auto number = value ? IntOf(*value) : std::nullopt;
    if (number && (*number < least || *number > most)) number.reset();
    return number;
  };
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const auto t_ns = integer("t_ns", 0, kMost);
  const auto pid = integer("pid", 1, kMost);
  const auto seq = integer("seq", 0, kMost);
  if (!t_ns || !pid || !seq) return false;
  out_->event.t_ns = *t_ns;
  out_->pid = *pid;
  out_->seq = *seq;
  out_->dropped = integer("dropped", 0, kMost);
  if (!out_->dropped && Get("dropped") != nullptr) ++out_->bad_fields;
  const auto rank = integer("rank", 0, std::numeric_limits<int32_t>::max());
  if (rank) out_->event.rank = static_cast<int32_t>(*rank);
  if (!rank && Get("rank") != nullptr) ++out_->bad_fields;
  return true;
}

bool MessageParser::ReadKind(const Kind& kind) {
  out_->event.kind = kind.kind;
  out_->event.fields.reserve(fields_.size());
  for (const Field& field : kind.fields) {
    if (field.key.empty()) break;
    const JsonElement* value = Get(field.key);
    const bool good = value != nullptr && ReadField(field, *value);
    if (!good && field.required) return false;
    if (!good && value != nullptr) ++out_->bad_fields;
  }
  if (kind.kind == EventKind::kMemory) ReadMemory(fields_);
  return true;
}

bool MessageParser::ReadField(const Field& field, JsonElement value) {
  switch (field.type) {
    case Type::kInt:
    case Type::kCount:
    case Type::kDuration:
    case Type::kBool:
      return ReadNumber(field, value);
    case Type::kText:
    case Type::kTraceback:
    case Type::kName:
    case Type::kTitle:
      return ReadText(field, value);
    case Type::kScalars: {
      const size_t before = out_->event.fields.size();
      return ReadScalars(value) && (!field.required || out_->event.fields.size() > before);
    }
    case Type::kVersions:
      return ReadVersions(value);
    case Type::kGpus:
      return ReadGpus(value);
    case Type::kMemory: {
      JsonObject object;
      if (value.get(object) != simdjson::SUCCESS) return false;
      Collect(object, inner_);
      return ReadMemory(inner_);
    }
  }
  return false;
}

bool MessageParser::ReadNumber(const Field& field, JsonElement value) {
  if (field.type == Type::kDuration) {
    const auto number = NumberOf(value);
    if (!number || *number < 0) return false;
    AddField(field.key, *number);
    return true;
  }
  if (field.type == Type::kBool) {
    const auto flag = BoolOf(value);
    if (flag) AddField(field.key, static_cast<int64_t>(*flag));
    return flag.has_value();
  }
  const auto number = IntOf(value);
  if (!number || (field.type == Type::kCount && *number < 0)) return false;
  if (field.key == "epoch") {
    out_->event.epoch = *number;
  } else if (field.key == "step") {
    out_->event.step = *number;
  } else {
    AddField(field.key, *number);
  }
  return true;
}

bool MessageParser::ReadText(const Field& field, JsonElement value) {
  const auto text = TextOf(value);
  if (!text) return false;
  if (field.type == Type::kName && !IsName(*text)) return false;
  if (field.type == Type::kName || field.type == Type::kTitle) {
    out_->event.name = FirstCharacters(*text, kMaxText);
  } else {
    const size_t most = field.type == Type::kTraceback ? kMaxTraceback : kMaxText;
    AddField(field.key, std::string(FirstCharacters(*text, most)));
  }
  return true;
}

bool MessageParser::ReadScalars(JsonElement value) {
  JsonObject object;
  if (value.get(object) != simdjson::SUCCESS) return false;
  Collect(object, inner_);
  size_t kept = 0;
  for (const auto& [name, element] : inner_) {
    const auto real = RealOf(element);
    if (!real || !IsName(name) || kept == kMaxScalars) {
      ++out_->bad_fields;
      continue;
    }
    ++kept;
    AddField("scalar." + std::string(name), *real);
  }
  return true;
}

bool MessageParser::ReadVersions(JsonElement value) {
  JsonObject object;
  if (value.get(object) != simdjson::SUCCESS) return false;
  Collect(object, inner_);
  for (const auto& [name, element] : inner_) {
    const auto text = TextOf(element);
    if (text && IsName(name)) {
      AddField("version." + std::string(name), std::string(FirstCharacters(*text, kMaxText)));
    } else {
      ++out_->bad_fields;
    }
  }
  return true;
}

bool MessageParser::ReadGpus(JsonElement value) {
  simdjson::dom::array list;
  if (value.get(list) != simdjson::SUCCESS) return false;
  std::string gpus;
  size_t seen = 0;
  for (const JsonElement item : list) {
    JsonObject gpu;
    if (++seen > kMaxGpus || item.get(gpu) != simdjson::SUCCESS) {
      ++out_->bad_fields;
      continue;
    }
    const auto index = IntField(gpu, "index");
    const auto uuid = TextField(gpu, "uuid");
    const auto pci = TextField(gpu, "pci_bus_id");
    out_->bad_fields +=
        static_cast<uint32_t>((!index && Find(gpu, "index")) + (!uuid && Find(gpu, "uuid")) +
                              (!pci && Find(gpu, "pci_bus_id")));
    if (!index && !uuid && !pci) continue;
    if (!gpus.empty()) gpus += ',';
    gpus += uuid  ? std::string(*uuid)
            : pci ? std::string(*pci)
                  : "framework:" + std::to_string(*index);
  }
  if (!gpus.empty()) AddField("gpus", std::move(gpus));
  return true;
}

bool MessageParser::ReadMemory(const Entries& members) {
  AllocatorReading reading;
  for (const auto& [name, element] : members) {
    const auto metric = std::find(kMemoryMembers.begin(), kMemoryMembers.end(), name);
    bool good = true;
    if (metric != kMemoryMembers.end()) {
      const auto number = IntOf(element);
      good = number && *number >= 0;
      if (good) reading.values[static_cast<size_t>(metric - kMemoryMembers.begin())] = number;
    } else if (name == "device" || name == "framework") {
      const auto text = TextOf(element);
      good = text.has_value();
      auto& place = name == "device" ? reading.device : reading.framework;
      if (good) place = FirstCharacters(*text, kMaxText);
    }
    if (!good) ++out_->bad_fields;
  }
  out_->memory = std::move(reading);
  return true;
}

}  // namespace epochmeter::ingest
