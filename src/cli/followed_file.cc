// SPDX-License-Identifier: Apache-2.0
#include "cli/followed_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/strings.h"
#include "ingest/log/log_names.h"

namespace epochmeter::cli {
namespace {

constexpr size_t kReadBytes = size_t{1} << 16;
constexpr size_t kKnownBytes = 4096;  // of the end of what was read
constexpr size_t kLeastKnownBytes = 32;
constexpr size_t kMostHeld = size_t{1} << 20;
constexpr int64_t kQuietNs = 200 * base::kNsPerMs;
constexpr int64_t kMostQuietNs = 500 * base::kNsPerMs;
constexpr int64_t kLateNs = 5 * base::kNsPerSecond;
constexpr int64_t kMissingNs = base::kNsPerSecond;

uint64_t SizeOf(const base::UniqueFd& fd) {
  struct stat info {};
  return ::fstat(fd.get(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

// As many bytes as there are; -1 for an error.
ssize_t ReadAt(int fd, char* to, size_t size, uint64_t offset) {
  ssize_t got = -1;
  do {
    got = ::pread(fd, to, size, static_cast<off_t>(offset));
  } while (got < 0 && errno == EINTR);
  return got;
}

// Whether a file holds these bytes before that offset.
bool Holds(int fd, std::string_view bytes, uint64_t offset) {
  std::string there(bytes.size(), '\0');
  const ssize_t got = ReadAt(fd, there.data(), there.size(), offset - bytes.size());
  return got == static_cast<ssize_t>(bytes.size()) && there == bytes;
}

void Remember(std::string_view bytes, std::string* last) {
  if (bytes.size() < kKnownBytes) {
    last->append(bytes);
    if (last->size() > kKnownBytes) last->erase(0, last->size() - kKnownBytes);
  } else {
    last->assign(bytes.substr(bytes.size() - kKnownBytes));
  }
}

// Files that a rotation may have made of `path`, the newest first.
std::vector<std::string> Siblings(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  std::vector<std::pair<int64_t, std::string>> found;
  DIR* dir = ::opendir(folder.empty() ? "." : folder.c_str());
  if (dir == nullptr) return {};
  for (const dirent* entry = ::readdir(dir); entry != nullptr; entry = ::readdir(dir)) {
    const std::string sibling = folder + entry->d_name;
    const auto rotated = ingest::log::ReadRotatedName(sibling);
    struct stat info {};
    if (!rotated || rotated->base != path || ::stat(sibling.c_str(), &info) != 0) continue;
    if (!S_ISREG(info.st_mode)) continue;
    found.emplace_back(info.st_mtim.tv_sec * base::kNsPerSecond + info.st_mtim.tv_nsec, sibling);
  }
  ::closedir(dir);
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> paths;
  for (auto& [time, name] : found) paths.push_back(std::move(name));
  return paths;
}

}  // namespace

FollowedFile::FollowedFile(std::string path, FollowSink& sink, uint64_t lines)
    : path_(std::move(path)), sink_(sink), lines_(lines) {}

size_t FollowedFile::Look(int64_t t_ns, size_t most_bytes) {
  LookAtName(t_ns);
  if (!now_ && !Advance(t_ns)) return 0;
  LookForTruncation();
  size_t got = Read(*now_, t_ns, most_bytes);
  while (got < most_bytes && Advance(t_ns)) got += Read(*now_, t_ns, most_bytes - got);
  return got + ReadLate(t_ns, most_bytes);
}

void FollowedFile::End() {
  for (Text& text : late_) GiveLate(text, true);
  if (now_) EndText(*now_);
}

void FollowedFile::LookAtName(int64_t t_ns) {
  struct stat info {};
  if (::stat(path_.c_str(), &info) != 0) {
    const int why = errno;
    const bool known = now_ || !next_.empty();
    if (!missing_ns_) missing_ns_ = t_ns;
    if (known && t_ns - *missing_ns_ < kMissingNs) return;  // between a rename and what follows it
    if (why != ENOENT) return TellOnce(base::SystemError("cannot look at", path_, why).Message());
    return TellOnce(known ? path_ + " is gone; waiting for it to appear again"
                          : path_ + " is not there yet; waiting for it");
  }
  missing_ns_.reset();
  const Text* newest = !next_.empty() ? &next_.back() : now_ ? &*now_ : nullptr;
  if (newest != nullptr && newest->device == info.st_dev && newest->inode == info.st_ino) {
    told_.clear();
    return;
  }
  Open();
}

void FollowedFile::Open() {
  Text text;
  // A name that became a pipe must not hold us.
  base::Result<base::UniqueFd> fd = base::OpenFile(path_, O_RDONLY | O_NONBLOCK);
  if (!fd.ok()) return TellOnce(fd.error().Message() + "; trying again");
  struct stat info {};
  if (::fstat(fd->get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return TellOnce(path_ + " is no file now; waiting for one");
  }
  told_.clear();
  text.fd = std::move(*fd);
  text.device = info.st_dev;
  text.inode = info.st_ino;
  text.unpacker = std::make_unique<ingest::log::Unpacker>([this](std::string_view bytes) {
    late_read_ ? void(late_.front().held.append(bytes)) : Give(bytes);
  });
  next_.push_back(std::move(text));
}

void FollowedFile::LookForTruncation() {
  Text& text = *now_;
  const uint64_t size = SizeOf(text.fd);
  if (size == text.offset) return;
  if (size > text.offset && Holds(text.fd.get(), text.last, text.offset)) return;
  const bool copied = ReadCopy(text);
  EndText(text);
  // A writer that does not append goes on behind a hole.
  const off_t data = ::lseek(text.fd.get(), 0, SEEK_DATA);
  text.offset = data > 0 ? static_cast<uint64_t>(data) : 0;
  text.last.clear();
  Tell(copied ? "was truncated; the rest of its text was read from a copy"
              : "was truncated; what was written right before may be missing");
}

// The rest of a text that was copied away and truncated.
bool FollowedFile::ReadCopy(const Text& text) {
  if (text.last.size() < std::min<uint64_t>(kLeastKnownBytes, text.offset) || text.offset == 0) {
    return false;
  }
  for (const std::string& path : Siblings(path_)) {
    base::Result<base::UniqueFd> fd = base::OpenFile(path, O_RDONLY | O_NONBLOCK);
    if (!fd.ok() || SizeOf(*fd) < text.offset) continue;
    if (!Holds(fd->get(), text.last, text.offset)) continue;
    uint64_t offset = text.offset;
    std::array<char, kReadBytes> buffer;
    for (;;) {
      const ssize_t got = ReadAt(fd->get(), buffer.data(), buffer.size(), offset);
      if (got <= 0) return true;
      text.unpacker->Feed({buffer.data(), static_cast<size_t>(got)});
      offset += static_cast<uint64_t>(got);
    }
  }
  return false;
}

size_t FollowedFile::Read(Text& text, int64_t t_ns, size_t most_bytes) {
  std::array<char, kReadBytes> buffer;
  size_t sum = 0;
  while (sum < most_bytes) {
    const ssize_t got = ReadAt(text.fd.get(), buffer.data(), buffer.size(), text.offset);
    if (got < 0) TellOnce(base::SystemError("cannot read", path_, errno).Message());
    if (got <= 0) break;
    const std::string_view bytes(buffer.data(), static_cast<size_t>(got));
    text.offset += bytes.size();
    text.fed_ns = t_ns;
    Remember(bytes, &text.last);
    text.unpacker->Feed(bytes);
    sum += bytes.size();
  }
  return sum;
}

// To the next file, once the one that had the name before has all its text.
bool FollowedFile::Advance(int64_t t_ns) {
  if (next_.empty()) return false;
  if (now_) {
    if (!hurry_ && next_.size() == 1 && SizeOf(next_.front().fd) == 0) return false;
    if (!moved_ns_) moved_ns_ = t_ns;
    const bool quiet = t_ns - now_->fed_ns >= kQuietNs || t_ns - *moved_ns_ >= kMostQuietNs;
    if (!quiet && !hurry_) return false;
    moved_ns_.reset();
    EndText(*now_);
    now_->until_ns = t_ns + kLateNs;
    late_.push_back(std::move(*now_));
    Tell("is a new file now");
  }
  now_ = std::move(next_.front());
  next_.pop_front();
  return true;
}

size_t FollowedFile::ReadLate(int64_t t_ns, size_t most_bytes) {
  size_t sum = 0;
  for (size_t left = late_.size(); left > 0; --left) {
    late_read_ = true;
    const size_t got = Read(late_.front(), t_ns, most_bytes);
    late_read_ = false;
    Text text = std::move(late_.front());
    late_.pop_front();
    sum += got;
    GiveLate(text, false);
    if (got > 0) text.until_ns = t_ns + kLateNs;
    if (t_ns < text.until_ns) {
      late_.push_back(std::move(text));
    } else {
      GiveLate(text, true);
    }
  }
  return sum;
}

// Whole lines only, between lines of the file that is read.
void FollowedFile::GiveLate(Text& text, bool all) {
  if (all && !text.held.empty()) EndLine();
  const size_t end = text.held.rfind('\n');
  const size_t whole = end == std::string::npos ? 0 : end + 1;
  const bool full = text.held.size() > kMostHeld;
  if (full) EndLine();
  const size_t size = all || full ? text.held.size() : open_line_ ? 0 : whole;
  if (size == 0) return;
  Give(std::string_view(text.held).substr(0, size));
  if (all) EndLine();
  text.held.erase(0, size);
}

void FollowedFile::Give(std::string_view bytes) {
  if (bytes.empty()) return;
  open_line_ = bytes.back() != '\n';
  lines_ += static_cast<uint64_t>(std::count(bytes.begin(), bytes.end(), '\n'));
  sink_.OnText(bytes);
}

void FollowedFile::EndText(Text& text) {
  const std::string problem = text.unpacker->Finish();
  if (!problem.empty()) sink_.OnTold(path_ + ": " + problem);
  text.unpacker = std::make_unique<ingest::log::Unpacker>([this](std::string_view bytes) {
    late_read_ ? void(late_.front().held.append(bytes)) : Give(bytes);
  });
  EndLine();
}

void FollowedFile::EndLine() {
  if (open_line_) Give("\n");
}

void FollowedFile::Tell(const std::string& words) {
  sink_.OnTold(fmt::format("{} {}; line 1 of the new text is line {}", path_, words, lines_ + 1));
}

void FollowedFile::TellOnce(const std::string& words) {
  if (words == told_) return;
  told_ = words;
  sink_.OnTold(words);
}

}  // namespace epochmeter::cli
