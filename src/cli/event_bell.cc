// SPDX-License-Identifier: Apache-2.0
#include "cli/event_bell.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>

namespace epochmeter::cli {

base::UniqueFd BindEventBell(int socket_fd) {
  sockaddr_un socket{};
  socklen_t size = sizeof socket;
  auto* name = reinterpret_cast<sockaddr*>(&socket);
  if (::getsockname(socket_fd, name, &size) != 0 || size <= offsetof(sockaddr_un, sun_path)) {
    return {};
  }
  const size_t length = ::strnlen(socket.sun_path, sizeof socket.sun_path);
  sockaddr_un bell{};
  if (length == 0 || length >= sizeof bell.sun_path) return {};
  bell.sun_family = AF_UNIX;
  std::memcpy(bell.sun_path + 1, socket.sun_path, length);
  base::UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto bell_size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  if (!fd.valid() || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&bell), bell_size) != 0) {
    return {};
  }
  return fd;
}

void QuietEventBell(int bell_fd) {
  char byte = 0;
  while (::recv(bell_fd, &byte, sizeof byte, MSG_DONTWAIT) >= 0) {
  }
}

}  // namespace epochmeter::cli
