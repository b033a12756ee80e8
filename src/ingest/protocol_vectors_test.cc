// SPDX-License-Identifier: Apache-2.0
// The protocol's test vectors, which the Python client's tests read too.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/strings.h"
#include "ingest/protocol.h"

namespace epochmeter::ingest {
namespace {

namespace fs = std::filesystem;

struct Case {
  std::string name, datagram, reason;
  bool valid = false;
  int64_t bad_fields = 0;
  JsonElement event;
};

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(base::ParseUint(hex.substr(i, 2), 16).value()));
  }
  return bytes;
}

std::string DatagramOf(JsonObject object) {
  if (const auto hex = TextField(object, "datagram_hex")) return FromHex(*hex);
  std::string text(TextField(object, "datagram").value());
  if (const auto repeat = Find(object, "repeat")) {
    const JsonObject times = repeat->get_object().value();
    std::string filler;
    for (int64_t i = 0; i < IntField(times, "count").value(); ++i) {
      filler += TextField(times, "text").value();
    }
    text.replace(text.find("@REPEAT@"), 8, filler);
  }
  return text;
}

// Keeps the parsed files alive, as cases point into them.
class Vectors {
 public:
  Vectors() {
    const char* root = std::getenv("EPOCHMETER_SOURCE_DIR");
    const fs::path folder = fs::path(root ? root : ".") / "tests/vectors/protocol";
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      if (entry.path().extension() == ".json") Load(entry.path());
    }
  }
  std::vector<Case> cases;

 private:
  void Load(const fs::path& path) {
    parsers_.push_back(std::make_unique<simdjson::dom::parser>());
    for (const JsonElement item : parsers_.back()->load(path.string()).get_array().value()) {
      const JsonObject object = item.get_object().value();
      Case one;
      one.name = TextField(object, "name").value();
      one.datagram = DatagramOf(object);
      one.valid = Find(object, "valid")->get_bool().value();
      one.reason = TextField(object, "reason").value_or("none");
      one.bad_fields = IntField(object, "bad_fields").value_or(0);
      if (const auto event = Find(object, "event")) one.event = *event;
      cases.push_back(std::move(one));
    }
  }
  std::vector<std::unique_ptr<simdjson::dom::parser>> parsers_;
};

std::string Shown(const model::FieldValue& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) return std::to_string(*i);
  if (const auto* d = std::get_if<double>(&value)) {
    char text[40];
    snprintf(text, sizeof text, "%.17g", *d);
    return text;
  }
  return "'" + std::get<std::string>(value) + "'";
}

using Flat = std::vector<std::pair<std::string, std::string>>;

std::string ShownReal(JsonElement value) { return Shown(model::FieldValue(*RealOf(value))); }

std::string ExpectedGpus(JsonElement value) {
  std::string gpus;
  for (const JsonElement gpu : value.get_array().value()) {
    const JsonObject object = gpu.get_object().value();
    std::string id;
    if (const auto index = IntField(object, "index")) id = "framework:" + std::to_string(*index);
    if (const auto pci = TextField(object, "pci_bus_id")) id = *pci;
    if (const auto uuid = TextField(object, "uuid")) id = *uuid;
    if (!id.empty()) gpus += (gpus.empty() ? "" : ",") + id;
  }
  return "'" + gpus + "'";
}

void ExpectMemory(JsonObject members, Flat& flat) {
  for (const auto [key, value] : members) {
    if (const auto number = IntOf(value)) {
      flat.emplace_back("memory." + std::string(key), std::to_string(*number));
    } else {
      flat.emplace_back("memory." + std::string(key), std::string(*TextOf(value)));
    }
  }
}

// What a vector's "event" says, in the flat form that Flatten gives of a Message.
Flat Expected(JsonElement event) {
  Flat flat;
  const JsonObject object = event.get_object().value();
  const std::string kind(TextField(object, "kind").value());
  for (const auto [name, value] : object) {
    const std::string key(name);
    if (key == "v") continue;
    if (key == "scalars") {
      for (const auto [s, v] : value.get_object().value()) {
        flat.emplace_back("scalar." + std::string(s), ShownReal(v));
      }
    } else if (key == "versions") {
      for (const auto [s, v] : value.get_object().value()) {
        flat.emplace_back("version." + std::string(s), "'" + std::string(*TextOf(v)) + "'");
      }
    } else if (key == "gpus") {
      const std::string gpus = ExpectedGpus(value);
      if (gpus != "''") flat.emplace_back(key, gpus);
    } else if (key == "memory") {
      ExpectMemory(value.get_object().value(), flat);
    } else if (kind == "memory" && (base::EndsWith(key, "_bytes") || key == "alloc_retries" ||
                                    key == "ooms" || key == "device")) {
      const auto number = IntOf(value);
      flat.emplace_back("memory." + key,
                        number ? std::to_string(*number) : std::string(*TextOf(value)));
    } else if (base::EndsWith(key, "_s")) {
      flat.emplace_back(key, ShownReal(value));
    } else if (const auto flag = BoolOf(value)) {
      flat.emplace_back(key, *flag ? "1" : "0");
    } else if (const auto text = TextOf(value)) {
      const bool title = key == "phase" || key == "name" || key == "type";
      flat.emplace_back(title ? "name" : key, "'" + std::string(*text) + "'");
    } else {
      flat.emplace_back(key, std::to_string(IntOf(value).value()));
    }
  }
  if (kind == "memory") {
    flat.emplace_back("memory.framework", std::string(TextField(object, "framework").value()));
  }
  std::sort(flat.begin(), flat.end());
  return flat;
}

Flat Flatten(const Message& message) {
  Flat flat;
  const model::Event& event = message.event;
  flat.emplace_back("kind", "'" + std::string(model::EventKindName(event.kind)) + "'");
  flat.emplace_back("t_ns", std::to_string(event.t_ns));
  flat.emplace_back("pid", std::to_string(message.pid));
  flat.emplace_back("seq", std::to_string(message.seq));
  if (message.dropped) flat.emplace_back("dropped", std::to_string(*message.dropped));
  if (event.rank) flat.emplace_back("rank", std::to_string(*event.rank));
  if (event.epoch) flat.emplace_back("epoch", std::to_string(*event.epoch));
  if (event.step) flat.emplace_back("step", std::to_string(*event.step));
  if (!event.name.empty()) flat.emplace_back("name", "'" + event.name + "'");
  for (const auto& field : event.fields) flat.emplace_back(field.key, Shown(field.value));
  if (message.memory) {
    const auto& memory = *message.memory;
    if (!memory.framework.empty()) flat.emplace_back("memory.framework", memory.framework);
    if (!memory.device.empty()) flat.emplace_back("memory.device", memory.device);
    constexpr const char* kNames[] = {"allocated_bytes",    "reserved_bytes", "max_allocated_bytes",
                                      "max_reserved_bytes", "alloc_retries",  "ooms"};
    for (size_t i = 0; i < kAllocatorMetricCount; ++i) {
      if (memory.values[i]) {
        flat.emplace_back(std::string("memory.") + kNames[i], std::to_string(*memory.values[i]));
      }
    }
  }
  std::sort(flat.begin(), flat.end());
  return flat;
}

TEST(ProtocolVectors, EveryCaseIsUnderstoodAsWritten) {
  const Vectors vectors;
  ASSERT_GT(vectors.cases.size(), 50U) << "tests/vectors/protocol not found";
  MessageParser parser;
  int valid = 0;
  for (const Case& one : vectors.cases) {
    SCOPED_TRACE(one.name);
    Message message;
    EXPECT_EQ(RefusalName(parser.Parse(one.datagram, &message)), one.reason);
    if (!one.valid) continue;
    ++valid;
    EXPECT_EQ(message.bad_fields, one.bad_fields);
    EXPECT_EQ(Flatten(message), Expected(one.event));
  }
  EXPECT_GT(valid, 20);
}

std::string Mutated(std::string text, std::mt19937& random) {
  const auto below = [&random](size_t n) { return static_cast<size_t>(random() % n); };
  for (size_t edits = 1 + below(4); edits > 0 && !text.empty(); --edits) {
    const size_t at = below(text.size());
    const char c = text[at];
    switch (below(12)) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, 1 + below(8));
        break;
      case 2:
        text.insert(at, 1, "{}[]\",:0123456789eE+-.\\u"[below(24)]);
        break;
      case 3:
        text.insert(at, text.substr(below(text.size()), below(20)));
        break;
      case 4:
        text[at] = static_cast<char>('0' + below(10));
        break;
      default:
        if (c >= '0' && c <= '9') text[at] = static_cast<char>('0' + below(10));
        break;
    }
  }
  return text;
}

// EPOCHMETER_MUTATIONS raises the count for a long run.
TEST(ProtocolVectors, MutatedDatagramsNeverCrashAndAreAllCounted) {
  const char* asked = std::getenv("EPOCHMETER_MUTATIONS");
  const int64_t count = asked ? base::ParseInt(asked).value_or(50'000) : 50'000;
  const Vectors vectors;
  ASSERT_FALSE(vectors.cases.empty());
  model::MemorySink sink;
  model::Registry registry(sink);
  ProtocolDecoder decoder(registry, sink);
  std::mt19937 random(20260822);
  for (int64_t i = 0; i < count; ++i) {
    const Case& one = vectors.cases[random() % vectors.cases.size()];
    const auto* event = decoder.Decode(Mutated(one.datagram, random), 1'000'000'000'000 + i);
    if (event != nullptr) {
      ASSERT_LE(event->t_ns, 1'020'000'000'000);
    }
    if (sink.records.size() > 100'000) sink.records.clear();
  }
  EXPECT_EQ(decoder.accepted() + decoder.refused(), static_cast<uint64_t>(count));
  EXPECT_GT(decoder.accepted(), static_cast<uint64_t>(count) / 20);
}

}  // namespace
}  // namespace epochmeter::ingest
