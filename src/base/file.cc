// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>

namespace epochmeter::base {

Result<UniqueFd> OpenFile(const std::string& path, int flags, unsigned mode) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return SystemError("cannot open", path, errno);
  return UniqueFd(fd);
}

Result<std::string> ReadFd(int fd, const std::string& path_for_errors, size_t limit) {
  std::string bytes;
  char buffer[16384];
  for (;;) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError("cannot read", path_for_errors, errno);
    if (n == 0) return bytes;
    bytes.append(buffer, static_cast<size_t>(n));
    if (bytes.size() > limit) return SystemError("file too large", path_for_errors, EFBIG);
  }
}

Result<std::string> ReadFile(const std::string& path, size_t limit) {
  EPM_ASSIGN(const UniqueFd fd, OpenFile(path, O_RDONLY));
  return ReadFd(fd.get(), path, limit);
}

Result<> WriteAll(int fd, std::string_view bytes, const std::string& path_for_errors) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError("cannot write", path_for_errors, errno);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Result<> WriteFileAtomically(const std::string& path, std::string_view bytes, unsigned mode) {
  const std::string temporary = path + ".new";
  {
    EPM_ASSIGN(const UniqueFd fd, OpenFile(temporary, O_WRONLY | O_CREAT | O_TRUNC, mode));
    EPM_TRY(WriteAll(fd.get(), bytes, temporary));
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    return SystemError("cannot rename", temporary + " to " + path, errno);
  }
  return {};
}

Result<> MakeDirectories(const std::string& path, unsigned mode) {
  for (size_t at = 0; at != std::string::npos;) {
    at = path.find('/', at + 1);
    const std::string part = path.substr(0, at);
    if (part.empty() || part == ".") continue;
    if (::mkdir(part.c_str(), mode) != 0 && errno != EEXIST) {
      return SystemError("cannot create the folder", part, errno);
    }
  }
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode)) {
    return SystemError("not a folder", path, ENOTDIR);
  }
  return {};
}

}  // namespace epochmeter::base
