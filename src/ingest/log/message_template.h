// SPDX-License-Identifier: Apache-2.0
// A template of similar messages, and where they came. Plain values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "ingest/log/message_mask.h"

namespace epochmeter::ingest::log {

// Messages that came close together: no pause of more than a few lines.
struct MessageRun {
  uint64_t first_line = 0, last_line = 0;
  uint32_t count = 0;
  uint32_t file = 0;
};

// Where and how often messages of one template came. Buckets are stretches of lines, the same for
// all templates: line >> TemplateTable::shift().
struct TemplateCounts {
  static constexpr size_t kBuckets = 64;

  uint64_t count = 0;
  uint64_t last_line = 0;
  MessageRun run, densest;  // the one that is going on; the one with the most messages
  std::array<uint32_t, kBuckets> buckets{};
};

struct MessageTemplate {
  std::string text;     // "Found an invalid box: id *, area *"; ends in " *" where any words follow
  std::string example;  // the first one as printed, without its prefix; at most kMostExampleBytes
  Alarm alarm = Alarm::kNone;
  bool logged = false;  // a time, level or logger stood in front of it
  uint32_t file = 0;    // of the first one
  uint64_t first_line = 0;
  std::optional<int64_t> first_wall_ns;
  uint32_t tokens = 0, fixed = 0;
  std::array<uint32_t, MaskedMessage::kMostTokens> token_hash{};
  uint32_t part_of = 0;  // another template that took this one in; 0: none
};

}  // namespace epochmeter::ingest::log
