// SPDX-License-Identifier: Apache-2.0
// What the run file needs of a file system; tests give one that forgets, tears and fails.
// File objects are used by one thread at a time, but ReadSome by any number.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace epochmeter::runfile {

class File {
 public:
  explicit File(std::string path) : path_(std::move(path)) {}
  virtual ~File() = default;

  // At most `size` bytes from `offset`; 0 at the end of the file. May be short, or EINTR.
  virtual base::Result<size_t> ReadSome(uint64_t offset, char* into, size_t size) const = 0;
  // Writes a first part of `bytes` at `offset`. May be short, or EINTR.
  virtual base::Result<size_t> WriteSome(uint64_t offset, std::string_view bytes) = 0;
  virtual base::Result<uint64_t> Size() const = 0;
  virtual base::Result<> Truncate(uint64_t size) = 0;
  virtual base::Result<> Sync() = 0;  // fdatasync
  // Takes the write lock of the file without waiting; it lasts as long as the object. False where
  // the file system has no locks.
  virtual base::Result<bool> Lock() = 0;
  // Whether `path`, links followed, leads to this very file; true when that can't be found out.
  virtual bool IsAt(const std::string& path) const = 0;
  // Where the file is now, also after it was moved; empty when that can't be known.
  virtual std::string PathNow() const = 0;

  // All of it, over short counts and interruptions. On error a part may have been written.
  base::Result<> Write(uint64_t offset, std::string_view bytes);
  // `size` bytes, or fewer where the file ends. `size` must be known to be sane.
  base::Result<std::string> Read(uint64_t offset, size_t size) const;
  const std::string& path() const { return path_; }
  void SetPath(std::string path) { path_ = std::move(path); }

 private:
  std::string path_;
};

// Whether a disk that answers so may be well again later: full, unreachable, an I/O error.
bool MayPass(const base::Error& error);

// Bytes in memory as a file that can only be read.
std::unique_ptr<File> BytesAsFile(std::string bytes, std::string path);

enum class OpenMode {
  kRead,
  kReadWrite,
  kCreate,  // new, an error if it exists
  kReplace  // created or emptied
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual base::Result<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) = 0;
  // Refuses a path, links followed, where something is that is not a regular file.
  virtual base::Result<> CheckRegularOrAbsent(const std::string& path) = 0;
  virtual base::Result<> Rename(const std::string& from, const std::string& to) = 0;
  virtual base::Result<> Remove(const std::string& path) = 0;
  // Makes creations, renames and removals in the folder of `path` durable.
  virtual base::Result<> SyncFolderOf(const std::string& path) = 0;
};

// The real one. Stateless; any thread.
FileSystem& PosixFileSystem();

}  // namespace epochmeter::runfile
