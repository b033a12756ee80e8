// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/stamp_place.h"

#include <algorithm>

namespace epochmeter::ingest::log {

std::optional<RawStamp> StampPlace::Read(std::string_view text, const Skeleton& skeleton) {
  if (at_ == At::kNowhere) return std::nullopt;
  if (at_ == At::kBegin) {
    if (auto stamp = ReadStampLike(text, 0)) return stamp;
  }
  if ((at_ == At::kNumber || at_ == At::kBracket) && number_ < skeleton.numbers) {
    const size_t number = skeleton.begin[number_];
    const size_t before = at_ == At::kBracket ? 1 : 0;
    if (number >= before) {
      if (auto stamp = ReadStampLike(text, number - before)) return stamp;
    }
  }
  const LinePrefix prefix = ReadLinePrefix(text);
  Learn(prefix, skeleton);
  return prefix.stamp;
}

void StampPlace::Learn(const LinePrefix& prefix, const Skeleton& skeleton) {
  if (at_ != At::kUnknown) return;
  if (!prefix.stamp) {
    if (++misses_ == kMostMisses) at_ = At::kNowhere;
    return;
  }
  at_ = prefix.stamp_at == 0 ? At::kBegin : At::kAnywhere;
  const auto* begin = skeleton.begin.data();
  const auto* end = begin + skeleton.numbers;
  const auto* found = std::lower_bound(begin, end, static_cast<uint32_t>(prefix.stamp_at));
  if (at_ == At::kBegin || found == end || *found > prefix.stamp_at + 1) return;
  at_ = *found > prefix.stamp_at ? At::kBracket : At::kNumber;
  number_ = static_cast<uint16_t>(found - begin);
}

}  // namespace epochmeter::ingest::log
