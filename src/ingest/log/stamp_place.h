// SPDX-License-Identifier: Apache-2.0
// Where lines of one skeleton have their stamp, so that it need not be looked for in each. One
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ingest/log/line_prefix.h"
#include "ingest/log/skeleton.h"

namespace epochmeter::ingest::log {

class StampPlace {
 public:
  // The stamp that ReadLinePrefix finds in this text; lines without one are searched no more when
  // several of their kind had none.
  std::optional<RawStamp> Read(std::string_view text, const Skeleton& skeleton);

 private:
  // kBracket: one byte in front of the number.
  enum class At : uint8_t { kUnknown, kNowhere, kBegin, kNumber, kBracket, kAnywhere };
  void Learn(const LinePrefix& prefix, const Skeleton& skeleton);

  static constexpr uint8_t kMostMisses = 8;
  At at_ = At::kUnknown;
  uint8_t misses_ = 0;
  uint16_t number_ = 0;
};

}  // namespace epochmeter::ingest::log
