// SPDX-License-Identifier: Apache-2.0
#include "cli/log_part.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/file.h"
#include "base/strings.h"
#include "ingest/log/unpacker.h"

namespace epochmeter::cli {
namespace {

constexpr size_t kReadBytes = size_t{1} << 18;
constexpr size_t kSampleBytes = size_t{1} << 16;
constexpr size_t kKnowBytes = 64;  // tell whether a file is packed
constexpr uint64_t kAskBytes = uint64_t{4} << 20;

ssize_t ReadSome(int fd, std::string* buffer) {
  ssize_t got = -1;
  do {
    got = ::read(fd, buffer->data(), buffer->size());
  } while (got < 0 && errno == EINTR);
  return got;
}

std::string SampleAt(int fd, uint64_t offset) {
  std::string bytes(kSampleBytes, '\0');
  const ssize_t got = ::pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
  bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return bytes;
}

uint64_t SizeOf(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

}  // namespace

base::Result<LogPart> LogPart::Open(const std::string& path) {
  base::UniqueFd fd(path == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : -1);
  if (path != "-") {
    base::Result<base::UniqueFd> opened = base::OpenFile(path, O_RDONLY);
    if (!opened.ok()) return base::SystemError("cannot read the log", path, opened.error().code);
    fd = std::move(*opened);
  } else if (!fd.valid()) {
    return base::SystemError("cannot read the log", "stdin", errno, "is it closed?");
  }
  struct stat info {};
  LogPart part(path, std::move(fd));
  // Stdin may stand anywhere in its file.
  part.regular_ = path != "-" && ::fstat(part.fd_.get(), &info) == 0 && S_ISREG(info.st_mode);
  part.size_ = part.regular_ ? static_cast<uint64_t>(info.st_size) : 0;
  if (part.regular_) ::posix_fadvise(part.fd_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  return part;
}

std::string LogPart::Head() const {
  if (!regular_) return {};
  std::string head;
  ingest::log::Unpacker unpacker([&head](std::string_view text) {
    head.append(text.substr(0, kSampleBytes - std::min(kSampleBytes, head.size())));
  });
  unpacker.Feed(SampleAt(fd_.get(), 0));
  unpacker.Finish();
  return head;
}

std::string LogPart::Tail() const {
  if (!regular_ || size_ <= kSampleBytes) return {};
  ingest::log::Unpacker unpacker([](std::string_view) {});
  unpacker.Feed(SampleAt(fd_.get(), 0).substr(0, kKnowBytes));
  return unpacker.packed() ? std::string() : SampleAt(fd_.get(), size_ - kSampleBytes);
}

base::Result<> LogPart::Read(const std::function<void(std::string_view)>& take,
                             const std::function<bool()>& going_on) {
  ingest::log::Unpacker unpacker(take);
  std::string buffer(kReadBytes, '\0');
  uint64_t sum = 0, ask = kAskBytes, until = size_;
  bool grown = false;
  int failed = 0;
  for (;;) {
    const ssize_t got = ReadSome(fd_.get(), &buffer);
    if (got < 0) failed = errno;
    if (got <= 0) break;
    unpacker.Feed(std::string_view(buffer).substr(0, static_cast<size_t>(got)));
    sum += static_cast<uint64_t>(got);
    if (size_ > 0 && sum >= until) {
      if (grown) break;
      grown = true;
      until = SizeOf(fd_.get());
      if (sum >= until) break;
    }
    if (sum < ask) continue;
    ask = sum + kAskBytes;
    if (!going_on()) return {};
  }
  const std::string problem = unpacker.Finish();
  if (!problem.empty()) warnings_.push_back(path_ + ": " + problem);
  if (failed != 0) {
    base::Error error = base::SystemError("cannot read the log", path_, failed);
    if (sum > 0) {
      error.what =
          "cannot read the log further than " + base::FormatBytes(static_cast<double>(sum));
    }
    return error;
  }
  if (sum < size_) {
    warnings_.push_back(fmt::format(
        "{} became shorter while it was read: {} of {} bytes were there", path_, sum, size_));
  }
  return {};
}

}  // namespace epochmeter::cli
