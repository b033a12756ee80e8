// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/events/anchor_set.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace epochmeter::ingest::log {
namespace {

constexpr size_t kKey = 4;            // letters by which an anchor is found
constexpr size_t kLongest = 64;       // anchor
constexpr size_t kChunk = 2048;       // letters looked at in one go
constexpr size_t kMostBytes = 65536;  // of a line

constexpr std::array<bool, 256> LetterTable() {
  std::array<bool, 256> table = {};
  for (int c = 'a'; c <= 'z'; ++c) table[static_cast<size_t>(c)] = true;
  for (int c = 'A'; c <= 'Z'; ++c) table[static_cast<size_t>(c)] = true;
  return table;
}
constexpr std::array<bool, 256> kLetter = LetterTable();

}  // namespace

AnchorSet::AnchorSet(std::span<const EventFamily* const> families) {
  EPM_CHECK(families.size() <= 64);
  for (size_t i = 0; i < families.size(); ++i) {
    for (const std::string_view letters : families[i]->anchors) {
      EPM_CHECK(letters.size() >= kKey && letters.size() <= kLongest);
      anchors_.push_back({letters, uint64_t{1} << i, BucketOf(letters.data())});
    }
  }
  std::stable_sort(anchors_.begin(), anchors_.end(),
                   [](const Anchor& a, const Anchor& b) { return a.bucket < b.bucket; });
  for (size_t i = anchors_.size(); i > 0; --i) {
    first_[anchors_[i - 1].bucket] = static_cast<uint16_t>(i);
  }
}

uint32_t AnchorSet::BucketOf(const char* letters) {
  uint32_t key = 0;
  std::memcpy(&key, letters, sizeof key);
  return (key * 0x9E3779B1U) >> 20;
}

uint64_t AnchorSet::Scan(const char* letters, size_t count) const {
  uint64_t found = 0;
  for (size_t at = 0; at + kKey <= count; ++at) {
    const uint32_t bucket = BucketOf(letters + at);
    if (first_[bucket] == 0) continue;
    const std::string_view rest(letters + at, count - at);
    for (size_t i = first_[bucket] - 1U; i < anchors_.size() && anchors_[i].bucket == bucket; ++i) {
      if (rest.substr(0, anchors_[i].letters.size()) == anchors_[i].letters) {
        found |= anchors_[i].families;
      }
    }
  }
  return found;
}

uint64_t AnchorSet::Find(std::string_view text) const {
  std::array<char, kChunk + kLongest + 1> letters;  // NOLINT: filled as far as it is read
  size_t count = 0;
  uint64_t found = 0;
  for (const char c : text.substr(0, kMostBytes)) {
    letters[count] = c;
    count += static_cast<size_t>(kLetter[static_cast<unsigned char>(c)]);
    if (count < kChunk + kLongest) continue;
    found |= Scan(letters.data(), count);
    std::memmove(letters.data(), letters.data() + count - kLongest, kLongest);
    count = kLongest;
  }
  return found | Scan(letters.data(), count);
}

}  // namespace epochmeter::ingest::log
