// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/json_block.h"

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace epochmeter::ingest::log {
namespace {

constexpr size_t kMostLines = 128;
constexpr size_t kMostBytes = size_t{16} * 1024;

// "\"loss\": 0.5,": a key with a value that ends on the line.
bool IsMember(std::string_view line) {
  return line.size() > 4 && line[0] == '"' && line.find("\":") != std::string_view::npos &&
         line.back() != '{' && line.back() != '[';
}

bool HasKey(std::string_view line, std::string_view key) {
  return line.size() > key.size() + 2 && line.substr(1, key.size()) == key &&
         line[key.size() + 1] == '"';
}

}  // namespace

void JsonBlock::Look(const Payload& payload) {
  const std::string_view line = base::Trim(payload.text);
  if (!held_.empty() && payload.source != source_) Flush();
  if (line == "{") {
    Flush();
    Hold(payload);
  } else if (held_.empty()) {
    sink_.OnPayload(payload);
  } else if (line == "}" || line == "},") {
    End(payload);
  } else if (IsMember(line) && held_.size() < kMostLines && bytes_ < kMostBytes) {
    Hold(payload);
  } else {
    Flush();
    sink_.OnPayload(payload);
  }
}

void JsonBlock::Hold(const Payload& payload) {
  if (held_.empty()) source_ = payload.source;
  held_.push_back({.text = std::string(payload.text), .payload = payload});
  bytes_ += payload.text.size();
}

void JsonBlock::PassOn(Payload payload, std::string_view text) {
  payload.text = text;
  payload.source = source_;
  payload.stamp = {};
  sink_.OnPayload(payload);
}

void JsonBlock::Flush() {
  for (const Held& held : held_) PassOn(held.payload, held.text);
  held_.clear();
  bytes_ = 0;
}

// The line of the whole is that which says where the training is.
void JsonBlock::End(const Payload& payload) {
  constexpr std::array<std::string_view, 5> kPlaces = {"step", "global_step", "iter", "epoch",
                                                       "loss"};
  if (held_.size() < 3) {  // the brace and a single key: no record
    Flush();
    sink_.OnPayload(payload);
    return;
  }
  std::string whole;
  for (const Held& held : held_) {
    whole += base::Trim(held.text);
    whole += ' ';
  }
  whole += '}';
  const Held* place = &held_.front();
  for (const std::string_view key : kPlaces) {
    const auto found = std::find_if(held_.begin(), held_.end(), [key](const Held& held) {
      return HasKey(base::Trim(held.text), key);
    });
    if (found == held_.end()) continue;
    place = &*found;
    break;
  }
  PassOn(place->payload, whole);
  held_.clear();
  bytes_ = 0;
}

}  // namespace epochmeter::ingest::log
