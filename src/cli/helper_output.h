// SPDX-License-Identifier: Apache-2.0
// What a helper process, or a library in it, prints: kept off the training's terminal and logs.
#pragma once

#include <cstdint>
#include <string>

#include "base/unique_fd.h"

namespace epochmeter::cli {

// The parent's side. One thread; nothing here waits, and a helper that prints more than the pipe
// holds is not held up either: its writes fail.
class HelperOutput {
 public:
  static constexpr size_t kMostBytes = 4096;
  // First lines come together, so they are told together.
  static constexpr int64_t kGatherNs = 1'000'000'000;

  // Anew for each helper. The descriptor for its stdout and stderr, which is closed by Started; -1
  // when none can be made.
  int Make();
  void Started(int64_t now_ns);
  // The text to tell, once for each helper and not twice the same; empty when there is nothing new.
  // `ended`: the helper is gone, so that what it said last is told without waiting.
  std::string Take(int64_t now_ns, bool ended);

 private:
  void Read();
  base::UniqueFd from_, to_;
  int64_t started_ns_ = 0;
  bool told_ = false;
  std::string text_, last_told_;
};

}  // namespace epochmeter::cli
