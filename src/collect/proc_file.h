// SPDX-License-Identifier: Apache-2.0
// Reading of /proc and /sys without an allocation a call, and parsing of what they hold.
// One thread each.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "model/registry.h"
#include "model/sink.h"

namespace epochmeter::collect {

// A file read again and again through one descriptor: procfs makes its text anew for a read at
// offset 0. A read that fails closes the descriptor and the next one opens the path again.
class HotFile {
 public:
  explicit HotFile(std::string path, size_t limit_bytes = size_t{1} << 20)
      : path_(std::move(path)), limit_bytes_(limit_bytes) {}
  // The first `limit_bytes` of the file, valid until the next call.
  base::Result<std::string_view> Read();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  size_t limit_bytes_;
  base::UniqueFd fd_;
  std::string buffer_;
};

// Replaces `text` by the file `name` below the folder `dir_fd`; more than `limit` bytes are cut.
// Returns 0 or errno.
int ReadAt(int dir_fd, const char* name, std::string& text, size_t limit = size_t{1} << 20);
// The same of an open file that the kernel writes in one piece, as /proc/PID/stat: less than a page
// is the whole of it, so that one call is enough.
int ReadOnce(int fd, std::string& text);

// Cuts the next part off `text`, without the separator; false when nothing is left.
bool NextLine(std::string_view& text, std::string_view& line);
bool NextWord(std::string_view& text, std::string_view& word);
// The next word as a number, else nothing.
std::optional<uint64_t> NextUint(std::string_view& text);
// Both ends belong to the range.
struct CpuRange {
  uint64_t first, last;
};
// The ranges of a list such as "0-3,8"; nothing when it is not one, or names a CPU from `most` on.
std::optional<std::vector<CpuRange>> ParseCpuRanges(std::string_view text, uint64_t most);
// CPUs in a list such as "0-3,8"; nothing when it is not one.
std::optional<int> CountCpuList(std::string_view text);

// Makes a counter of fewer bits rise on: a fall from the upper quarter of 2^32 is a wrap, any other
// fall a reset that passes through.
class Unwrap32 {
 public:
  uint64_t Next(uint64_t raw);

 private:
  uint64_t last_raw_ = 0;
  uint64_t base_ = 0;
};

// Tells the sink of a series' condition when it changes; a series begins as ok.
class SeriesStates {
 public:
  explicit SeriesStates(model::Sink& sink) : sink_(sink) {}
  void Set(int64_t t_ns, model::SeriesId series, model::SeriesCondition condition,
           const std::string& detail = {});

 private:
  model::Sink& sink_;
  std::map<model::SeriesId, std::pair<model::SeriesCondition, std::string>> known_;
};
// The condition that stands for an errno of open or read.
model::SeriesCondition ConditionOf(int errno_value);

}  // namespace epochmeter::collect
