// SPDX-License-Identifier: Apache-2.0
#include "cli/helper_process.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/strings.h"
#include "cli/signals.h"

namespace epochmeter::cli {
namespace {

// Both included.
void CloseRange(int first, int last) {
  if (::syscall(SYS_close_range, first, last, 0) == 0) return;
  // Kernels before 5.9.
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const int most = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1 << 20));
  for (int fd = first; fd <= last && fd < most; ++fd) ::close(fd);
}

}  // namespace

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
    // The lowest free number is `fd`: those below it are open. A folder for root without devices
    // has no /dev/null; then anything may hold the place.
    if (::open("/dev/null", O_RDWR | O_CLOEXEC) < 0) {
      [[maybe_unused]] const int placeholder = ::eventfd(0, EFD_CLOEXEC);
    }
  }
}

void CloseAllBut(const std::vector<int>& keep) {
  std::vector<int> sorted(keep);
  std::sort(sorted.begin(), sorted.end());
  int first = STDERR_FILENO + 1;
  for (const int fd : sorted) {
    if (fd > first) CloseRange(first, fd - 1);
    if (fd >= first) first = fd + 1;
  }
  CloseRange(first, INT_MAX);
}

void PointToNull(int fd) {
  const base::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (null.valid() && null.get() != fd) ::dup2(null.get(), fd);
}

void BecomeHelper(const char* name, const std::vector<int>& keep) {
  ::prctl(PR_SET_NAME, name);
  ::prctl(PR_SET_PDEATHSIG, SIGCONT);
  IgnoreSignalsOfTheGroup();
  const rlimit no_core{.rlim_cur = 0, .rlim_max = 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  PointToNull(STDIN_FILENO);
  CloseAllBut(keep);
}

void DieWithin(unsigned seconds) {
  ::signal(SIGALRM, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGALRM);
  ::sigprocmask(SIG_UNBLOCK, &one, nullptr);
  ::alarm(seconds);
}

void HideCommandLine(const char* name) {
  const base::Result<std::string> stat = base::ReadFile("/proc/self/stat");
  if (!stat.ok()) return;
  constexpr size_t kArgStart = 48, kArgEnd = 49;  // proc(5), counted from 1; the name may have ' '
  const std::string_view after = std::string_view(*stat).substr(stat->rfind(')') + 1);
  const std::vector<std::string_view> words = base::SplitWhitespace(after);
  if (words.size() <= kArgEnd - 3) return;
  const auto start = base::ParseInt(words[kArgStart - 3]);
  const auto end = base::ParseInt(words[kArgEnd - 3]);
  if (!start || !end || *start <= 0 || *end - *start < 2) return;
  const auto room = static_cast<size_t>(*end - *start);
  // Our own copy since the fork, at the address that the kernel tells.
  char* text = reinterpret_cast<char*>(*start);  // NOLINT(performance-no-int-to-ptr)
  std::memset(text, 0, room);
  std::string_view(name).copy(text, room - 1);
}

}  // namespace epochmeter::cli
