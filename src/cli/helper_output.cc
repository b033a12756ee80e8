// SPDX-License-Identifier: Apache-2.0
#include "cli/helper_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace epochmeter::cli {

int HelperOutput::Make() {
  from_.Reset();
  to_.Reset();
  text_.clear();
  told_ = false;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return -1;
  from_ = base::UniqueFd(ends[0]);
  to_ = base::UniqueFd(ends[1]);
  return to_.get();
}

void HelperOutput::Started(int64_t now_ns) {
  to_.Reset();
  started_ns_ = now_ns;
}

// Stays open when enough was read: a helper without a reader would die of SIGPIPE.
void HelperOutput::Read() {
  std::array<char, kMostBytes> chunk;
  while (from_.valid() && text_.size() < kMostBytes) {
    const ssize_t n = ::read(from_.get(), chunk.data(), kMostBytes - text_.size());
    if (n <= 0) return;
    text_.append(chunk.data(), static_cast<size_t>(n));
  }
}

std::string HelperOutput::Take(int64_t now_ns, bool ended) {
  const bool due = ended || now_ns - started_ns_ >= kGatherNs;
  if (!from_.valid() || (told_ && !ended) || !due) return {};
  if (std::exchange(told_, true)) text_.clear();  // what it said later: its last words
  Read();
  std::string text(base::Trim(text_));
  if (text.empty()) {
    told_ = ended;  // it may speak later
    return {};
  }
  if (text == last_told_) return {};
  last_told_ = text;
  return text;
}

}  // namespace epochmeter::cli
