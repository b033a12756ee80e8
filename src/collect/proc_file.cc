// SPDX-License-Identifier: Apache-2.0
#include "collect/proc_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/file.h"
#include "base/strings.h"

namespace epochmeter::collect {

namespace {

// Reads from the start to the end or to `limit`; 0 or errno.
int ReadWhole(int fd, std::string& text, size_t limit) {
  constexpr size_t kFirst = 4096;
  size_t used = 0;
  if (text.size() < kFirst) text.resize(kFirst);
  for (;;) {
    const ssize_t n = ::pread(fd, text.data() + used, std::min(text.size(), limit) - used,
                              static_cast<off_t>(used));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    used += static_cast<size_t>(n);
    if (n == 0 || used >= limit) break;
    if (used == text.size()) text.resize(2 * used);
  }
  text.resize(used);
  return 0;
}

bool NextPart(std::string_view& text, std::string_view& part, std::string_view separators,
              bool skip_empty) {
  const size_t from = skip_empty ? text.find_first_not_of(separators) : 0;
  if (from == std::string_view::npos || from >= text.size()) {
    text = {};
    return false;
  }
  const size_t to = text.find_first_of(separators, from);
  part = text.substr(from, to == std::string_view::npos ? to : to - from);
  text = to == std::string_view::npos ? std::string_view() : text.substr(to + 1);
  return true;
}

}  // namespace

base::Result<std::string_view> HotFile::Read() {
  if (!fd_.valid()) {
    EPM_ASSIGN(fd_, base::OpenFile(path_, O_RDONLY));
  }
  const int error = ReadWhole(fd_.get(), buffer_, limit_bytes_);
  if (error != 0) {
    fd_.Reset();
    return base::SystemError("cannot read", path_, error);
  }
  return std::string_view(buffer_);
}

int ReadAt(int dir_fd, const char* name, std::string& text, size_t limit) {
  const base::UniqueFd fd(::openat(dir_fd, name, O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return errno;
  return ReadWhole(fd.get(), text, limit);
}

int ReadOnce(int fd, std::string& text) {
  constexpr size_t kPage = 4096;
  text.resize(kPage);
  ssize_t n = 0;
  do {
    n = ::pread(fd, text.data(), kPage, 0);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return errno;
  text.resize(static_cast<size_t>(n));
  return text.size() < kPage ? 0 : ReadWhole(fd, text, SIZE_MAX);
}

bool NextLine(std::string_view& text, std::string_view& line) {
  return NextPart(text, line, "\n", false);
}

bool NextWord(std::string_view& text, std::string_view& word) {
  return NextPart(text, word, " \t\n", true);
}

std::optional<uint64_t> NextUint(std::string_view& text) {
  std::string_view word;
  if (!NextWord(text, word)) return std::nullopt;
  return base::ParseUint(word);
}

std::optional<std::vector<CpuRange>> ParseCpuRanges(std::string_view text, uint64_t most) {
  std::vector<CpuRange> ranges;
  for (const std::string_view part : base::Split(base::Trim(text), ',')) {
    const size_t dash = part.find('-');
    const auto first = base::ParseUint(part.substr(0, dash));
    const auto last =
        dash == std::string_view::npos ? first : base::ParseUint(part.substr(dash + 1));
    if (!first || !last || *last < *first || *last >= most) return std::nullopt;
    ranges.push_back({*first, *last});
  }
  return ranges;
}

std::optional<int> CountCpuList(std::string_view text) {
  constexpr uint64_t kMostCpus = 1 << 20;
  const auto ranges = ParseCpuRanges(text, kMostCpus);
  if (!ranges) return std::nullopt;
  uint64_t count = 0;
  for (const CpuRange& range : *ranges) count += range.last - range.first + 1;
  return count <= kMostCpus ? std::optional(static_cast<int>(count)) : std::nullopt;
}

uint64_t Unwrap32::Next(uint64_t raw) {
  constexpr uint64_t kRange = uint64_t{1} << 32;
  if (raw < last_raw_) {
    const bool wrapped = last_raw_ < kRange && last_raw_ >= kRange / 4 * 3;
    base_ = wrapped ? base_ + kRange : 0;
  }
  last_raw_ = raw;
  return base_ + raw;
}

void SeriesStates::Set(int64_t t_ns, model::SeriesId series, model::SeriesCondition condition,
                       const std::string& detail) {
  auto& known = known_[series];
  if (known.first == condition && known.second == detail) return;
  known = {condition, detail};
  sink_.Write(
      model::SeriesState{.t_ns = t_ns, .series = series, .condition = condition, .detail = detail});
}

model::SeriesCondition ConditionOf(int errno_value) {
  switch (errno_value) {
    case EACCES:
    case EPERM:
      return model::SeriesCondition::kNoPermission;
    case ENOENT:
    case EOPNOTSUPP:
    case ENOSYS:
      return model::SeriesCondition::kNotSupported;
    default:
      return model::SeriesCondition::kError;
  }
}

}  // namespace epochmeter::collect
