// SPDX-License-Identifier: Apache-2.0
#include "cli/say.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace epochmeter::cli {
namespace {

// A full pipe holds a write(2) although poll(2) said that there was room, when somebody else filled
// it meanwhile. O_NONBLOCK would be the training's as well, so it is spliced.
bool SpliceToStderr(const std::string& text) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
  const base::UniqueFd out(ends[0]), in(ends[1]);
  const ssize_t written = ::write(in.get(), text.data(), text.size());
  return written > 0 && ::splice(out.get(), nullptr, STDERR_FILENO, nullptr,
                                 static_cast<size_t>(written), SPLICE_F_NONBLOCK) > 0;
}

}  // namespace

bool SayAtOnce(std::string line) {
  line += '\n';
  if (line.size() > PIPE_BUF) line.resize(PIPE_BUF);
  struct stat about {};
  if (::fstat(STDERR_FILENO, &about) != 0) return false;
  if (S_ISFIFO(about.st_mode)) return SpliceToStderr(line);
  if (S_ISSOCK(about.st_mode)) {
    return ::send(STDERR_FILENO, line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
  }
  pollfd writable{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&writable, 1, 0) <= 0) return false;
  return ::write(STDERR_FILENO, line.data(), line.size()) > 0;
}

}  // namespace epochmeter::cli
