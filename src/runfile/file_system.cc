// SPDX-License-Identifier: Apache-2.0
#include "runfile/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "base/file.h"
#include "base/unique_fd.h"

namespace epochmeter::runfile {

base::Result<> File::Write(uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const base::Result<size_t> written = WriteSome(offset, bytes);
    if (!written.ok()) {
      if (written.error().code == EINTR) continue;
      return written.error();
    }
    if (*written == 0) return base::SystemError("cannot write", path_, ENOSPC);
    offset += *written;
    bytes.remove_prefix(*written);
  }
  return {};
}

base::Result<std::string> File::Read(uint64_t offset, size_t size) const {
  std::string bytes(size, '\0');
  size_t have = 0;
  while (have < size) {
    const base::Result<size_t> got = ReadSome(offset + have, bytes.data() + have, size - have);
    if (!got.ok()) {
      if (got.error().code == EINTR) continue;
      return got.error();
    }
    if (*got == 0) break;
    have += *got;
  }
  bytes.resize(have);
  return bytes;
}

namespace {

class BytesFile : public File {
 public:
  BytesFile(std::string bytes, std::string path)
      : File(std::move(path)), bytes_(std::move(bytes)) {}

  base::Result<size_t> ReadSome(uint64_t offset, char* into, size_t size) const override {
    if (offset >= bytes_.size()) return size_t{0};
    return bytes_.copy(into, size, static_cast<size_t>(offset));
  }
  base::Result<uint64_t> Size() const override { return uint64_t{bytes_.size()}; }
  base::Result<size_t> WriteSome(uint64_t, std::string_view) override { return ReadOnly(); }
  base::Result<> Truncate(uint64_t) override { return ReadOnly(); }
  base::Result<> Sync() override { return ReadOnly(); }
  base::Result<bool> Lock() override { return ReadOnly(); }
  bool IsAt(const std::string&) const override { return false; }
  std::string PathNow() const override { return path(); }

 private:
  base::Error ReadOnly() const { return base::SystemError("cannot write", path(), EROFS); }
  std::string bytes_;
};

class PosixFile : public File {
 public:
  PosixFile(std::string path, base::UniqueFd fd) : File(std::move(path)), fd_(std::move(fd)) {}

  base::Result<size_t> ReadSome(uint64_t offset, char* into, size_t size) const override {
    const ssize_t got = ::pread(fd_.get(), into, size, static_cast<off_t>(offset));
    if (got < 0) return base::SystemError("cannot read", path(), errno);
    return static_cast<size_t>(got);
  }

  base::Result<size_t> WriteSome(uint64_t offset, std::string_view bytes) override {
    const ssize_t put = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0) return base::SystemError("cannot write", path(), errno);
    return static_cast<size_t>(put);
  }

  base::Result<uint64_t> Size() const override {
    struct stat info {};
    if (::fstat(fd_.get(), &info) != 0) return base::SystemError("cannot read", path(), errno);
    if (!S_ISREG(info.st_mode)) {
      return base::Error{.what = "not a run file", .where = path(), .why = "not a regular file"};
    }
    return static_cast<uint64_t>(info.st_size);
  }

  base::Result<> Truncate(uint64_t size) override {
    if (::ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) {
      return base::SystemError("cannot cut", path(), errno);
    }
    return {};
  }

  base::Result<> Sync() override {
    int rc = 0;
    do {
      rc = ::fdatasync(fd_.get());
    } while (rc != 0 && errno == EINTR);
    if (rc != 0) return base::SystemError("cannot sync", path(), errno);
    return {};
  }

  base::Result<bool> Lock() override {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    if (::fcntl(fd_.get(), F_OFD_SETLK, &lock) == 0) return true;
    if (errno == EAGAIN || errno == EACCES) {
      return base::Error{.what = "the run file is being written by another process",
                         .where = path(),
                         .why = "",
                         .what_to_do = "wait for it to end, or choose another path",
                         .code = EAGAIN};
    }
    // A file system without locks (some network mounts): exclusive creation is all there is.
    if (errno == ENOLCK || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) return false;
    return base::SystemError("cannot lock", path(), errno);
  }

  bool IsAt(const std::string& where) const override {
    struct stat ours {};
    struct stat there {};
    if (::fstat(fd_.get(), &ours) != 0) return true;
    if (::stat(where.c_str(), &there) != 0) return errno != ENOENT && errno != ENOTDIR;
    return ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
  }

  std::string PathNow() const override {
    const std::string link = "/proc/self/fd/" + std::to_string(fd_.get());
    char now[4096];
    const ssize_t size = ::readlink(link.c_str(), now, sizeof now);
    return size > 0 ? std::string(now, static_cast<size_t>(size)) : std::string();
  }

 private:
  base::UniqueFd fd_;
};

int FlagsOf(OpenMode mode) {
  switch (mode) {
    case OpenMode::kRead:
      return O_RDONLY | O_NONBLOCK;  // a pipe at the path must not hang us
    case OpenMode::kReadWrite:
      return O_RDWR;
    case OpenMode::kCreate:
      return O_RDWR | O_CREAT | O_EXCL;
    case OpenMode::kReplace:
      return O_RDWR | O_CREAT | O_TRUNC;
  }
  return O_RDONLY;
}

class RealFileSystem : public FileSystem {
 public:
  base::Result<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override {
    EPM_ASSIGN(base::UniqueFd fd, base::OpenFile(path, FlagsOf(mode)));
    std::unique_ptr<File> file = std::make_unique<PosixFile>(path, std::move(fd));
    EPM_TRY(file->Size());  // refuses what is not a regular file
    return file;
  }

  base::Result<> CheckRegularOrAbsent(const std::string& path) override {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) {
      if (errno == ENOENT) return {};
      return base::SystemError("cannot look at", path, errno);
    }
    if (S_ISREG(info.st_mode)) return {};
    const char* const kind = S_ISDIR(info.st_mode)    ? "a folder"
                             : S_ISCHR(info.st_mode)  ? "a device"
                             : S_ISBLK(info.st_mode)  ? "a block device"
                             : S_ISFIFO(info.st_mode) ? "a pipe"
                                                      : "a socket";
    return base::Error{.what = "cannot create the run file",
                       .where = path,
                       .why = std::string("it is ") + kind + ", not a regular file",
                       .what_to_do = "choose another path",
                       .code = EEXIST};
  }

  base::Result<> Rename(const std::string& from, const std::string& to) override {
    if (std::rename(from.c_str(), to.c_str()) != 0) {
      return base::SystemError("cannot rename", from + " to " + to, errno);
    }
    return {};
  }

  base::Result<> Remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) return base::SystemError("cannot remove", path, errno);
    return {};
  }

  base::Result<> SyncFolderOf(const std::string& path) override {
    const size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "."
                               : slash == 0               ? "/"
                                                          : path.substr(0, slash);
    EPM_ASSIGN(const base::UniqueFd fd, base::OpenFile(folder, O_RDONLY | O_DIRECTORY));
    // Some file systems can't sync a folder and say EINVAL: then there is nothing to wait for.
    if (::fsync(fd.get()) != 0 && errno != EINVAL && errno != ENOSYS) {
      return base::SystemError("cannot sync", folder, errno);
    }
    return {};
  }
};

}  // namespace

bool MayPass(const base::Error& error) {
  constexpr std::array kPassing = {ENOSPC, EDQUOT, EIO,    EINTR,     ETIMEDOUT, ESTALE,
                                   ENOMEM, ENFILE, EMFILE, EREMOTEIO, EBUSY,     ENOTCONN};
  return std::find(kPassing.begin(), kPassing.end(), error.code) != kPassing.end();
}

std::unique_ptr<File> BytesAsFile(std::string bytes, std::string path) {
  return std::make_unique<BytesFile>(std::move(bytes), std::move(path));
}

FileSystem& PosixFileSystem() {
  static RealFileSystem file_system;
  return file_system;
}

}  // namespace epochmeter::runfile
