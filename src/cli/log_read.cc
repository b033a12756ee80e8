// SPDX-License-Identifier: Apache-2.0
#include "cli/log_read.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/file.h"
#include "base/unique_fd.h"

namespace epochmeter::cli {
namespace {

constexpr size_t kReadBytes = size_t{1} << 18;

std::optional<int64_t> ModifiedNs(const struct stat& info) {
  if (!S_ISREG(info.st_mode)) return {};
  return int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

void AddFolder(const std::string& folder, std::vector<std::string>* names) {
  std::error_code ignored;
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.is_regular_file(ignored)) found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  names->insert(names->end(), found.begin(), found.end());
}

}  // namespace

base::Result<std::unique_ptr<LogSource>> LogSource::Find(const std::vector<std::string>& inputs) {
  auto source = std::make_unique<LogSource>();
  std::vector<std::string> names;
  for (const std::string& input : inputs) {
    struct stat info {};
    if (input != "-" && ::stat(input.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
      AddFolder(input, &names);
    } else {
      names.push_back(input);
    }
  }
  for (const std::string& name : names) {
    struct stat info {};
    const bool there = name == "-" || ::stat(name.c_str(), &info) == 0;
    if (!there) {
      base::Error error = base::SystemError("cannot read the log", name, errno, "");
      if (names.size() == 1) return error;
      source->warnings_.push_back(error.Message());
      continue;
    }
    source->files_.push_back({.name = name, .modified_ns = ModifiedNs(info)});
  }
  if (source->files_.empty()) {
    return base::Error{.what = "no log to read",
                       .where = inputs.empty() ? "" : inputs.front(),
                       .why = "",
                       .what_to_do = "name a file, a folder with logs, or - for stdin"};
  }
  return source;
}

base::Result<> LogSource::Read(ingest::log::LogEngine* engine, bool /*follow*/) {
  std::string buffer(kReadBytes, '\0');
  for (const ingest::log::LogFile& file : files_) {
    const base::UniqueFd opened(file.name == "-" ? ::dup(STDIN_FILENO)
                                                 : ::open(file.name.c_str(), O_RDONLY | O_CLOEXEC));
    const uint32_t number = engine->Open(file);
    int failed = opened.valid() ? 0 : errno;
    while (failed == 0) {
      const ssize_t got = ::read(opened.get(), buffer.data(), buffer.size());
      if (got == 0) break;
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) failed = errno;
      if (got > 0) engine->Feed(number, std::string_view(buffer.data(), static_cast<size_t>(got)));
    }
    engine->Close(number);
    if (failed == 0) continue;
    const base::Error error = base::SystemError("cannot read the log", file.name, failed, "");
    if (files_.size() == 1) return error;
    warnings_.push_back(error.Message());
  }
  engine->Finish();
  return {};
}

std::string LogSource::name() const {
  const std::string name = files_.empty() ? "-" : files_.front().name;
  return name == "-" ? "stdin" : name.substr(name.rfind('/') + 1);
}

std::optional<int64_t> LogSource::modified_ns() const {
  std::optional<int64_t> last;
  for (const ingest::log::LogFile& file : files_) {
    if (file.modified_ns) last = std::max(last.value_or(*file.modified_ns), *file.modified_ns);
  }
  return last;
}

}  // namespace epochmeter::cli
