// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/strings.h"
#include "cli/recorder.h"

namespace epochmeter::cli {
namespace {

// False when the path is too long for a socket address.
bool MakeAddress(const std::string& path, sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;
  if (path.size() >= sizeof address->sun_path) return false;
  std::memcpy(address->sun_path, path.c_str(), path.size() + 1);
  return true;
}

}  // namespace

bool SomebodyListens(const std::string& path) {
  sockaddr_un address;
  const base::UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return fd.valid() && MakeAddress(path, &address) &&
         ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

void RemoveAbandonedSockets(const std::string& socket_path) {
  const std::string folder = socket_path.substr(0, socket_path.rfind('/') + 1);
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder.c_str()), &::closedir);
  constexpr int kMostLooks = 1000;  // a start must not take long
  for (int looks = 0; dir != nullptr && looks < kMostLooks; ++looks) {
    const dirent* entry = ::readdir(dir.get());
    if (entry == nullptr) return;
    const std::string path = folder + entry->d_name;
    struct stat about {};
    const bool ours = base::EndsWith(path, ".sock") && ::lstat(path.c_str(), &about) == 0 &&
                      S_ISSOCK(about.st_mode) && about.st_uid == ::geteuid();
    if (ours && !SomebodyListens(path)) ::unlink(path.c_str());
  }
}

base::Result<base::UniqueFd> BindEventSocket(const std::string& path) {
  sockaddr_un address;
  base::UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return base::SystemError("cannot make the event socket", path, errno);
  if (!MakeAddress(path, &address)) {
    return base::SystemError("cannot make the event socket", path, ENAMETOOLONG,
                             "set XDG_RUNTIME_DIR to a folder with a short path");
  }
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return base::SystemError("cannot bind the event socket", path, errno);
  }
  ::chmod(path.c_str(), 0600);
  const int on = 1;
  const int bytes = 1 << 20;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  return fd;
}

}  // namespace epochmeter::cli
