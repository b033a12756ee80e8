// SPDX-License-Identifier: Apache-2.0
// Decides whether what looks like a wrapper is one: a host's name, a task's number, a container's
// name or a time in front of nearly all lines. One thread; bounded.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/log/wrapper_mark.h"

namespace epochmeter::ingest::log {

// What has been proven in a file.
class LearnedWrappers {
 public:
  // The mark at the begin of a text, if its kind was proven and its name fits those seen.
  WrapperMark Read(std::string_view text);
  bool Knows(WrapperKind kind) const { return known_[static_cast<size_t>(kind)]; }
  bool any() const { return any_; }

 private:
  friend class WrapperLearner;
  std::array<bool, kWrapperKinds> known_{};
  bool Fits(std::string_view name);

  bool any_ = false;
  bool brackets_ = false;           // of indexes: "[3] "
  std::vector<std::string> names_;  // bounded: those asked for last
  std::vector<std::string> forms_;  // of names, digits masked
};

// Looks at a stretch of lines. A wrapper stands before most of them, with few names that come back
// in changing order before texts that differ; a list, a dump of settings or a count of epochs does
// not.
class WrapperLearner {
 public:
  enum class Verdict : uint8_t { kOpen, kProven, kRefused };
  static constexpr size_t kMostLines = 256;

  // The next line of the stretch and what may be its mark.
  void See(const WrapperMark& mark, std::string_view text);
  // `last`: no more lines come. Proven kinds are added to `known`.
  Verdict Judge(bool last, LearnedWrappers& known) const;
  size_t lines() const { return lines_; }
  void Clear() { *this = WrapperLearner(); }

 private:
  static constexpr size_t kMostNames = 128;
  static constexpr size_t kMostTexts = 4;
  struct Name {
    std::string name;
    uint32_t lines = 0;
    std::array<uint64_t, kMostTexts> texts{};  // hashes of different ones
    size_t different = 0;
  };
  struct Seen {
    uint32_t lines = 0;
    uint32_t comebacks = 0;  // of a name behind another one
    size_t last = 0;         // place in names
    bool brackets = false;
    std::vector<Name> names;
  };

  static void SeeName(Seen& seen, std::string_view name, std::string_view text);
  bool Proven(WrapperKind kind, bool last) const;

  std::array<Seen, kWrapperKinds> seen_{};
  size_t lines_ = 0;
};

}  // namespace epochmeter::ingest::log
