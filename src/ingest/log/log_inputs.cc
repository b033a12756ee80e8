// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/log_inputs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/file.h"
#include "base/strings.h"
#include "ingest/log/file_head.h"
#include "ingest/log/log_names.h"

namespace epochmeter::ingest::log {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHeadBytes = 4096;
constexpr size_t kMostFiles = 4096;
constexpr const char* kCannotRead = "cannot read the log";

std::string PathOf(const std::string& word) { return word == "-" ? "/dev/stdin" : word; }

bool IsRegular(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

// Some bytes of a regular file; fewer when it has no more.
std::string BytesAt(int fd, off_t at) {
  std::string bytes(kHeadBytes, '\0');
  ssize_t got = -1;
  do {
    got = ::pread(fd, bytes.data(), bytes.size(), at);
  } while (got < 0 && errno == EINTR);
  bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return bytes;
}

// A file that begins with NULs and ends in text is a log whose writer did not see that it was
// truncated.
HeadKind KindOfFile(const base::UniqueFd& fd) {
  const HeadKind kind = KindOfHead(BytesAt(fd.get(), 0));
  struct stat info {};
  if (kind != HeadKind::kNuls || ::fstat(fd.get(), &info) != 0) return kind;
  const off_t last = std::max<off_t>(0, info.st_size - static_cast<off_t>(kHeadBytes));
  std::string end = BytesAt(fd.get(), last);
  end.erase(0, end.find_first_not_of('\0'));
  return !end.empty() && IsText(end) ? HeadKind::kText : kind;
}

const char* WhyNoLog(HeadKind kind) {
  switch (kind) {
    case HeadKind::kText:
    case HeadKind::kGzip:
    case HeadKind::kZstd:
      return nullptr;
    case HeadKind::kXz:
    case HeadKind::kBzip2:
      return "packed by xz or bzip2";
    case HeadKind::kRunFile:
      return "run files";
    case HeadKind::kPicture:
    case HeadKind::kArchive:
      return "pictures and archives";
    case HeadKind::kNuls:
    case HeadKind::kBinary:
      return "binary";
  }
  return nullptr;
}

bool HasPattern(const std::string& word) { return word.find_first_of("*?[") != std::string::npos; }

// Whether no quarter of the file begins with text, and it does not end in any.
bool HasNoText(const base::UniqueFd& fd) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return false;
  const off_t last = std::max<off_t>(0, info.st_size - static_cast<off_t>(kHeadBytes));
  for (const off_t at : {last / 4, last / 2, last / 4 * 3, last}) {
    if (at > 0 && IsText(BytesAt(fd.get(), at))) return false;
  }
  return true;
}

// Why a file that the user names can't be read as a log. In doubt it can.
std::optional<base::Error> WhyNotNamed(const std::string& path, const base::UniqueFd& fd) {
  base::Error error{.what = kCannotRead, .where = path, .why = "", .what_to_do = ""};
  const HeadKind kind = KindOfFile(fd);
  switch (kind) {
    case HeadKind::kText:
    case HeadKind::kGzip:
    case HeadKind::kZstd:
    case HeadKind::kNuls:
      return {};
    case HeadKind::kXz:
    case HeadKind::kBzip2:
      error.why = kind == HeadKind::kXz ? "it is packed by xz" : "it is packed by bzip2";
      error.what_to_do = kind == HeadKind::kXz ? "xz -dc FILE | epochmeter log -"
                                               : "bzip2 -dc FILE | epochmeter log -";
      return error;
    case HeadKind::kRunFile:
      error.why = "it is a run file, no log";
      error.what_to_do = "see 'epochmeter report " + path + "'";
      return error;
    case HeadKind::kPicture:
    case HeadKind::kArchive:
    case HeadKind::kBinary:
      if (!HasNoText(fd)) return {};
      error.why = "it is binary, no text";
      error.what_to_do = "name the file that the training prints to";
      return error;
  }
  return {};
}

// Why the folder can't be read; nothing when it can.
std::optional<base::Error> WhyNotListed(const std::string& folder) {
  const auto opened = base::OpenFile(folder, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
  const bool entered = opened.ok() && ::faccessat(AT_FDCWD, folder.c_str(), X_OK, AT_EACCESS) == 0;
  if (entered) return {};
  return base::SystemError("cannot list the folder", folder,
                           opened.ok() ? errno : opened.error().code,
                           "may you read it, and enter it?");
}

}  // namespace

std::vector<LogInput> LogFinder::Find(const std::vector<std::string>& words) {
  std::vector<std::string> paths;
  for (const std::string& word : words) FindWord(word, &paths);
  return Join(paths);
}

void LogFinder::FindWord(const std::string& word, std::vector<std::string>* paths) {
  struct stat info {};
  if (word == "-" || ::stat(word.c_str(), &info) == 0) {
    if (word == "-" || !S_ISDIR(info.st_mode)) return AddNamed(word, paths);
    return AddFolder(word, word, paths);
  }
  const int why = errno;
  if (HasPattern(word)) return AddPattern(word, paths);
  // What is not there may come, and a folder on the way to it, too.
  if (live_ && why == ENOENT) {
    if (named_.insert(word).second) paths->push_back(word);
    return;
  }
  Tell(base::SystemError(kCannotRead, word, why,
                         why == ENOENT ? "name a file, a folder with logs, or - for stdin" : ""));
}

void LogFinder::AddFolder(const std::string& folder, const std::string& word,
                          std::vector<std::string>* paths) {
  open_ = open_ || live_;
  if (auto error = WhyNotListed(folder)) return Tell(std::move(*error));
  std::error_code failed;
  const auto options = fs::directory_options::skip_permission_denied;
  fs::recursive_directory_iterator entry(folder, options, failed);
  if (failed) {
    return Tell(base::SystemError("cannot list the folder", folder, failed.value(),
                                  "may you read it, and enter it?"));
  }
  std::vector<std::string> found;
  for (; entry != fs::recursive_directory_iterator(); entry.increment(failed)) {
    std::error_code ignored;
    const std::string path = entry->path().string();
    if (base::StartsWith(entry->path().filename().string(), ".")) {
      LeaveOut(word, path, "hidden");
      entry.disable_recursion_pending();
    } else if (entry->is_directory(ignored) && !entry->is_symlink(ignored)) {
      auto error = WhyNotListed(path);
      if (error) entry.disable_recursion_pending();
      if (error) Tell(std::move(*error));
    } else if (entry->is_regular_file(ignored)) {
      found.push_back(path);
    }
  }
  if (failed) Tell(base::SystemError("cannot list all of the folder", folder, failed.value()));
  std::sort(found.begin(), found.end(), NaturalLess);
  for (const std::string& path : found) AddFound(path, word, paths);
}

void LogFinder::AddPattern(const std::string& word, std::vector<std::string>* paths) {
  open_ = open_ || live_;
  glob_t matches{};
  const int code = ::glob(word.c_str(), GLOB_NOSORT | GLOB_TILDE, nullptr, &matches);
  std::vector<std::string> found(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  ::globfree(&matches);
  if (code == GLOB_NOMATCH && !live_) {
    return Tell({.what = kCannotRead,
                 .where = word,
                 .why = "no file matches this pattern",
                 .what_to_do = "name a file, a folder with logs, or - for stdin"});
  }
  std::sort(found.begin(), found.end(), NaturalLess);
  for (const std::string& path : found) {
    struct stat info {};
    const bool folder = ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
    folder ? AddFolder(path, word, paths) : AddFound(path, word, paths);
  }
}

// What a folder or a pattern gave: logs only.
void LogFinder::AddFound(const std::string& path, const std::string& word,
                         std::vector<std::string>* paths) {
  if (!IsRegular(path) || known_.contains(path)) return;
  known_.insert(path);
  if (NamesNoLog(path)) return LeaveOut(word, path, "by their ending");
  const auto fd = base::OpenFile(path, O_RDONLY | O_NONBLOCK);
  if (!fd.ok()) return Tell(base::SystemError(kCannotRead, path, fd.error().code));
  if (const char* why = WhyNoLog(KindOfFile(*fd))) return LeaveOut(word, path, why);
  if (logs_.size() + paths->size() >= kMostFiles) return LeaveOut(word, path, "beyond 4096 files");
  if (New(path)) paths->push_back(path);
}

// What the user names is read, whatever it is, where there is a way to.
void LogFinder::AddNamed(const std::string& path, std::vector<std::string>* paths) {
  if (path != "-" && IsRegular(path)) {
    const auto fd = base::OpenFile(path, O_RDONLY | O_NONBLOCK);
    if (!fd.ok()) return Tell(base::SystemError(kCannotRead, path, fd.error().code));
    if (auto error = WhyNotNamed(path, *fd)) return Tell(std::move(*error));
  }
  if (New(path)) paths->push_back(path);
}

bool LogFinder::New(const std::string& path) {
  struct stat info {};
  if (::stat(PathOf(path).c_str(), &info) != 0) return named_.insert(path).second;
  if (named_.contains(path)) return false;
  return seen_.insert({info.st_dev, info.st_ino}).second;
}

void LogFinder::LeaveOut(const std::string& word, const std::string& path, const char* why) {
  left_out_[word][why].insert(path);
}

void LogFinder::Tell(base::Error error) {
  if (failed_.insert(error.where).second) errors_.push_back(std::move(error));
}

std::vector<LogInput> LogFinder::Join(const std::vector<std::string>& paths) {
  std::vector<LogInput> inputs;
  for (LogParts& log : JoinRotated(paths, IsRegular)) {
    const std::string& newest = log.paths.back();
    const auto rotated = ReadRotatedName(newest);
    // A log that was given is rotated meanwhile: who follows it has this, and reads the next.
    if (logs_.contains(newest) || (rotated && logs_.contains(rotated->base))) continue;
    LogInput input{.name = newest, .parts = std::move(log.paths)};
    struct stat info {};
    input.there = ::stat(PathOf(input.name).c_str(), &info) == 0;
    if (input.there && S_ISREG(info.st_mode)) {
      input.modified_ns = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
    }
    logs_.insert(input.name);
    inputs.push_back(std::move(input));
  }
  return inputs;
}

std::vector<std::string> LogFinder::LeftOut() const {
  std::vector<std::string> sentences;
  for (const auto& [word, reasons] : left_out_) {
    size_t files = 0;
    std::vector<std::string> parts;
    for (const auto& [why, paths] : reasons) {
      files += paths.size();
      parts.push_back(fmt::format("{} {}", paths.size(), why));
    }
    sentences.push_back(fmt::format("{}: {} {} left out as no logs: {} (name one to have it read)",
                                    word, files, files == 1 ? "file was" : "files were",
                                    base::Join(parts, ", ")));
  }
  return sentences;
}

}  // namespace epochmeter::ingest::log
