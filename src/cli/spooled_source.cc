// SPDX-License-Identifier: Apache-2.0
#include "cli/spooled_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/file.h"
#include "base/strings.h"
#include "base/unique_fd.h"

namespace epochmeter::cli {
namespace {

bool IsPipe(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return false;
  return S_ISFIFO(about.st_mode) || S_ISSOCK(about.st_mode) || S_ISCHR(about.st_mode);
}

base::Result<> CopyAll(int from, int to, uint64_t most_bytes, const std::string& name) {
  std::array<char, 65536> chunk{};
  uint64_t copied = 0;
  for (;;) {
    const ssize_t n = ::read(from, chunk.data(), chunk.size());
    if (n == 0) return {};
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::SystemError("cannot read", name, errno);
    copied += static_cast<uint64_t>(n);
    if (copied > most_bytes) {
      return base::Error{.what = "cannot import",
                         .where = name,
                         .why = "more than " + base::FormatBytes(static_cast<double>(most_bytes)) +
                                " came through the pipe",
                         .what_to_do = "write it to a file and import that",
                         .code = EFBIG};
    }
    EPM_TRY(base::WriteAll(to, {chunk.data(), static_cast<size_t>(n)}, "a temporary file"));
  }
}

}  // namespace

SpooledSource::SpooledSource(SpooledSource&& other) noexcept
    : path_(std::move(other.path_)),
      name_(std::move(other.name_)),
      folder_(std::exchange(other.folder_, {})) {}

SpooledSource::~SpooledSource() {
  if (folder_.empty()) return;
  ::unlink(path_.c_str());
  ::rmdir(folder_.c_str());
}

base::Result<SpooledSource> SpooledSource::Make(const std::string& source, uint64_t most_bytes) {
  const bool standard = source == "-";
  SpooledSource made(standard ? "/dev/stdin" : source, standard ? "stdin" : source);
  if (IsPipe(made.path_)) EPM_TRY(made.Fill(most_bytes));
  return made;
}

base::Result<> SpooledSource::Fill(uint64_t most_bytes) {
  const base::UniqueFd from(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!from.valid()) return base::SystemError("cannot read", name_, errno);
  const char* given = std::getenv("TMPDIR");
  std::string folder =
      std::string(given == nullptr || *given == '\0' ? "/tmp" : given) + "/epochmeter-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) {
    return base::SystemError("cannot make a temporary folder", folder, errno,
                             "set TMPDIR to a folder that can be written");
  }
  folder_ = folder;
  path_ = folder + "/stdin";  // the run is named after it
  const base::UniqueFd to(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!to.valid()) return base::SystemError("cannot make", path_, errno);
  return CopyAll(from.get(), to.get(), most_bytes, name_);
}

base::Error SpooledSource::Renamed(base::Error error) const {
  for (std::string* part : {&error.where, &error.why}) {
    const size_t at = path_.empty() ? std::string::npos : part->find(path_);
    if (at != std::string::npos) part->replace(at, path_.size(), name_);
  }
  return error;
}

}  // namespace epochmeter::cli
