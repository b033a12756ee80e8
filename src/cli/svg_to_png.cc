// SPDX-License-Identifier: Apache-2.0
#include "cli/svg_to_png.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"
#include "base/strings.h"
#include "base/unique_fd.h"

namespace epochmeter::cli {
namespace {

constexpr const char* kProgram = "rsvg-convert";
constexpr size_t kMostPng = size_t{1} << 28;

// A file in memory: unlike a pipe, it never makes a writer wait for its reader.
base::Result<base::UniqueFd> MemoryFile(const std::string& bytes) {
  base::UniqueFd fd(::memfd_create("epochmeter", MFD_CLOEXEC));
  if (!fd.valid()) return base::SystemError("cannot make a file in memory", "memfd_create", errno);
  EPM_TRY(base::WriteAll(fd.get(), bytes, "memfd"));
  if (::lseek(fd.get(), 0, SEEK_SET) != 0) {
    return base::SystemError("cannot go back in a file in memory", "lseek", errno);
  }
  return fd;
}

base::Result<pid_t> Start(int in, int out, int err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  std::string words[] = {kProgram, "--format=png", "--zoom=2"};
  char* const arguments[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  pid_t pid = -1;
  const int failed = ::posix_spawnp(&pid, kProgram, &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed == 0) return pid;
  return base::SystemError("cannot make a PNG without rsvg-convert", kProgram, failed,
                           "install it (Debian, Ubuntu: apt install librsvg2-bin; Fedora: "
                           "librsvg2-tools), or write -f svg");
}

}  // namespace

base::Result<std::string> PngOfSvg(const std::string& svg) {
  EPM_ASSIGN(const base::UniqueFd in, MemoryFile(svg));
  EPM_ASSIGN(const base::UniqueFd words, MemoryFile(""));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::SystemError("cannot make a pipe", "pipe", errno);
  const base::UniqueFd from(ends[0]);
  base::UniqueFd to(ends[1]);
  EPM_ASSIGN(const pid_t pid, Start(in.get(), to.get(), words.get()));
  to.Reset();
  base::Result<std::string> png = base::ReadFd(from.get(), kProgram, kMostPng);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!png.ok()) return png;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && !png->empty()) return png;
  std::string why;
  if (::lseek(words.get(), 0, SEEK_SET) == 0) {
    base::Result<std::string> text = base::ReadFd(words.get(), "memfd", size_t{1} << 16);
    if (text.ok()) why = std::string(base::Trim(*text));
  }
  return base::Error{.what = "rsvg-convert made no PNG",
                     .where = kProgram,
                     .why = why,
                     .what_to_do = "write -f svg"};
}

}  // namespace epochmeter::cli
