// SPDX-License-Identifier: Apache-2.0
// Folders opened below a descriptor.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <memory>

namespace epochmeter::collect {

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};
using Dir = std::unique_ptr<DIR, CloseDir>;

// Null with errno when it can't be opened.
inline Dir OpenDirAt(int dir_fd, const char* name) {
  const int fd = ::openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  Dir dir(::fdopendir(fd));
  if (!dir) ::close(fd);
  return dir;
}

}  // namespace epochmeter::collect
