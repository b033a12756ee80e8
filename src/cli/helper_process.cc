// SPDX-License-Identifier: Apache-2.0
#include "cli/helper_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "base/strings.h"

namespace epochmeter::cli {

base::Result<SocketPair> MakeSocketPair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return base::SystemError("cannot make a socket pair", "socketpair", errno);
  }
  return SocketPair{.ours = base::UniqueFd(ends[0]), .theirs = base::UniqueFd(ends[1])};
}

void FillStandardDescriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest free number is `fd`: those below it are open.
    [[maybe_unused]] const int opened = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  }
}

void CloseAllBut(const std::vector<int>& keep) {
  std::vector<int> open;
  DIR* dir = ::opendir("/proc/self/fd");
  if (dir == nullptr) return;
  for (const dirent* entry = ::readdir(dir); entry != nullptr; entry = ::readdir(dir)) {
    const auto fd = base::ParseInt(entry->d_name);
    if (fd && *fd > 2 && *fd != ::dirfd(dir)) open.push_back(static_cast<int>(*fd));
  }
  ::closedir(dir);
  for (const int fd : open) {
    if (std::find(keep.begin(), keep.end(), fd) == keep.end()) ::close(fd);
  }
}

void PointToNull(int fd) {
  const base::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (null.valid() && null.get() != fd) ::dup2(null.get(), fd);
}

}  // namespace epochmeter::cli
