// SPDX-License-Identifier: Apache-2.0
// A library to preload into the recorder: makes calls on run files fail, stall or come up short, as
// a control file says. Acts only where EPOCHMETER_TEST_FAULTS names that file, in processes of ours
// (by name), on run files and their folders. The training inherits the library and is left alone.
//
// The control file is read again before each call; a line is one rule (rules.h), the first that
// matches counts. Each call is written to CONTROL.log: time in ns, pid, kind, number, 1 when a rule
// hit it, bytes asked for, bytes or 0 done or -errno, path.
//
// Real calls are made by syscall(2), so that nothing here ever calls itself.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rules.h"

namespace epochmeter::faults {
namespace {

int64_t NowNs() {
  timespec now{};
  ::syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

void SleepNs(int64_t ns) {
  timespec left{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  while (::syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &left, &left) != 0) {
  }
}

std::string PathOf(int fd) {
  char link[64];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  char path[4096];
  const long size = ::syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path);
  return size > 0 ? std::string(path, static_cast<size_t>(size)) : std::string();
}

bool IsOurProcess() {
  char name[16] = {};
  ::prctl(PR_GET_NAME, name);
  return std::strcmp(name, "epm-recorder") == 0 || std::strcmp(name, "epochmeter") == 0;
}

class Faults {
 public:
  Faults() {
    const char* path = std::getenv("EPOCHMETER_TEST_FAULTS");
    if (path != nullptr) control_ = path;
  }

  // Whether calls on this path are ours to fail: a run file or its folder.
  bool Concerns(CallKind kind, const std::string& path) const {
    if (control_.empty() || !IsOurProcess()) return false;
    return path.find(".emr") != std::string::npos || kind == CallKind::kStatfs ||
           kind == CallKind::kMagic || kind == CallKind::kSync;
  }

  // Counts the call and finds what is to happen to it.
  Fault Begin(CallKind kind, const std::string& path, uint64_t* number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    *number = counts_.Count(kind);
    return Choose(ReadRules(), kind, path, counts_, NowNs(), memory_);
  }

  void Log(CallKind kind, uint64_t number, bool hit, size_t asked, long done,
           const std::string& path) const {
    char line[4400];
    const int size = std::snprintf(line, sizeof line, "%lld %d %s %llu %d %zu %ld %s\n",
                                   static_cast<long long>(NowNs()), static_cast<int>(::getpid()),
                                   NameOf(kind), static_cast<unsigned long long>(number),
                                   hit ? 1 : 0, asked, done, path.c_str());
    const std::string name = control_ + ".log";
    const long fd = ::syscall(SYS_openat, AT_FDCWD, name.c_str(),
                              O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) return;
    ::syscall(SYS_write, fd, line, size);
    ::syscall(SYS_close, fd);
  }

  // Writes of a file that its next sync brings to the disk; a killed process takes them along.
  void Hold(const std::string& path, off_t offset, const void* bytes, size_t size) {
    const std::lock_guard<std::mutex> lock(mutex_);
    held_[path].push_back({offset, std::string(static_cast<const char*>(bytes), size)});
  }
  void Release(int fd, const std::string& path) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [offset, bytes] : std::exchange(held_[path], {})) {
      ::syscall(SYS_pwrite64, fd, bytes.data(), bytes.size(), offset);
    }
  }

 private:
  std::vector<Rule> ReadRules() const {
    const long fd = ::syscall(SYS_openat, AT_FDCWD, control_.c_str(), O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return {};
    char text[4096];
    const long size = ::syscall(SYS_read, fd, text, sizeof text);
    ::syscall(SYS_close, fd);
    return ParseRules({text, static_cast<size_t>(size > 0 ? size : 0)});
  }

  std::string control_;
  std::mutex mutex_;  // guards all below
  Counts counts_;
  Memory memory_;
  std::map<std::string, std::vector<std::pair<off_t, std::string>>> held_;
};

Faults& All() {
  static Faults* const faults = new Faults;  // outlives every thread that calls
  return *faults;
}

// Makes one call with what is to happen to it. `real` takes the bytes to ask for.
template <typename Real>
long Call(CallKind kind, const std::string& path, size_t asked, Real real) {
  if (!All().Concerns(kind, path)) return real(asked);
  uint64_t number = 0;
  const Fault fault = All().Begin(kind, path, &number);
  if (fault.delay_ns > 0) SleepNs(fault.delay_ns);
  if (fault.bytes_per_s > 0 && asked > 0) {
    SleepNs(static_cast<int64_t>(asked) * 1'000'000'000 / fault.bytes_per_s);
  }
  long done = -1;
  errno = fault.error;
  if (fault.error == 0) done = real(fault.halve && asked > 1 ? asked / 2 : asked);
  const int error = errno;
  All().Log(kind, number, fault.any(), asked, done < 0 ? -error : done, path);
  errno = error;
  return done;
}

long PositionedWrite(int fd, const void* bytes, size_t size, off_t offset) {
  const std::string path = PathOf(fd);
  uint64_t unused = 0;
  if (All().Concerns(CallKind::kHold, path) && All().Begin(CallKind::kHold, path, &unused).hold) {
    All().Hold(path, offset, bytes, size);
    return static_cast<long>(size);
  }
  return Call(CallKind::kWrite, path, size,
              [&](size_t asked) { return ::syscall(SYS_pwrite64, fd, bytes, asked, offset); });
}

long Truncate(int fd, off_t size) {
  const std::string path = PathOf(fd);
  All().Release(fd, path);
  return Call(CallKind::kTruncate, path, 0,
              [&](size_t) { return ::syscall(SYS_ftruncate, fd, size); });
}

long Sync(int fd, long number) {
  const std::string path = PathOf(fd);
  return Call(CallKind::kSync, path, 0, [&](size_t) {
    All().Release(fd, path);
    return ::syscall(number, fd);
  });
}

long Open(const char* path, int flags, unsigned mode) {
  const auto real = [&](size_t) { return ::syscall(SYS_openat, AT_FDCWD, path, flags, mode); };
  return Call((flags & O_CREAT) != 0 ? CallKind::kCreate : CallKind::kOpen, path, 0, real);
}

long Control(int fd, int command, void* argument) {
  const auto real = [&](size_t) { return ::syscall(SYS_fcntl, fd, command, argument); };
  if (command != F_OFD_SETLK) return real(0);
  return Call(CallKind::kLock, PathOf(fd), 0, real);
}

long FileSystemOf(const char* path, struct statfs* into) {
  const long done =
      Call(CallKind::kStatfs, path, 0, [&](size_t) { return ::syscall(SYS_statfs, path, into); });
  uint64_t unused = 0;
  if (done != 0 || !All().Concerns(CallKind::kMagic, path)) return done;
  const Fault fault = All().Begin(CallKind::kMagic, path, &unused);
  if (fault.magic != 0) into->f_type = static_cast<decltype(into->f_type)>(fault.magic);
  return done;
}

}  // namespace
}  // namespace epochmeter::faults

namespace f = epochmeter::faults;

// The names of the C library, in both spellings of a 64-bit offset.
extern "C" {
ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  return f::PositionedWrite(fd, bytes, size, offset);
}
ssize_t pwrite64(int fd, const void* bytes, size_t size, off_t offset) {
  return f::PositionedWrite(fd, bytes, size, offset);
}
int fdatasync(int fd) { return static_cast<int>(f::Sync(fd, SYS_fdatasync)); }
int fsync(int fd) { return static_cast<int>(f::Sync(fd, SYS_fsync)); }
int ftruncate(int fd, off_t size) noexcept { return static_cast<int>(f::Truncate(fd, size)); }
int ftruncate64(int fd, off_t size) noexcept { return static_cast<int>(f::Truncate(fd, size)); }

int open(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const unsigned mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, unsigned) : 0;
  va_end(arguments);
  return static_cast<int>(f::Open(path, flags, mode));
}
int open64(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const unsigned mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, unsigned) : 0;
  va_end(arguments);
  return static_cast<int>(f::Open(path, flags, mode));
}
int rename(const char* from, const char* to) noexcept {
  return static_cast<int>(f::Call(f::CallKind::kRename, to, 0, [&](size_t) {
    return ::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
  }));
}
int unlink(const char* path) noexcept {
  return static_cast<int>(f::Call(f::CallKind::kRemove, path, 0, [&](size_t) {
    return ::syscall(SYS_unlinkat, AT_FDCWD, path, 0);
  }));
}
int fcntl(int fd, int command, ...) {
  std::va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return static_cast<int>(f::Control(fd, command, argument));
}
int fcntl64(int fd, int command, ...) {
  std::va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return static_cast<int>(f::Control(fd, command, argument));
}
int statfs(const char* path, struct statfs* into) noexcept {
  return static_cast<int>(f::FileSystemOf(path, into));
}
}
