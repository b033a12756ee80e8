// SPDX-License-Identifier: Apache-2.0
// A file system in memory for tests: knows what was synced, can fail at any operation, and gives
// the images that a power failure could leave.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runfile/file_system.h"
#include "runfile/random_records.h"

namespace epochmeter::runfile {

class MemoryFileSystem : public FileSystem {
 public:
  // What an injected fault does to the operation it hits.
  struct Fault {
    int error = 0;             // errno
    size_t written_bytes = 0;  // of a write, before it fails
  };

  base::Result<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override;
  base::Result<> CheckRegularOrAbsent(const std::string&) override { return {}; }
  base::Result<> Rename(const std::string& from, const std::string& to) override;
  base::Result<> Remove(const std::string& path) override;
  base::Result<> SyncFolderOf(const std::string& path) override;

  bool Exists(const std::string& path) const { return names_.contains(path); }
  std::string Bytes(const std::string& path) const;
  void SetBytes(const std::string& path, std::string bytes);
  void CopyFrom(const MemoryFileSystem& other);

  // Called before each operation that changes something, with its number; may give a fault.
  std::function<std::optional<Fault>(uint64_t)> on_operation;
  size_t longest_write_bytes = SIZE_MAX;  // writes are cut short to this
  uint64_t capacity_bytes = UINT64_MAX;   // of all files together; then ENOSPC
  uint64_t operations() const { return operations_; }

  // How the unsynced part of a file looks after a power failure.
  enum class Loss { kAllUnsynced, kNothing, kRandomWrites, kTornWrites };
  // Fills `image` with a state that a power failure now could leave.
  void PowerFail(Loss loss, RandomRecords& random, MemoryFileSystem& image) const;

 private:
  friend class MemoryFile;
  struct Change {  // of a file: bytes written, or a new size
    uint64_t offset = 0;
    std::string bytes;
    std::optional<uint64_t> truncate;
  };
  struct Inode {
    std::string now;
    std::string durable;
    std::vector<Change> unsynced;
    bool locked = false;
  };
  using Names = std::map<std::string, std::shared_ptr<Inode>>;

  base::Result<> Begin(const std::string& what, size_t* allowed_bytes);
  static void Apply(const Change& change, std::string& bytes);
  uint64_t UsedBytes() const;

  Names names_;
  std::vector<Names> folder_states_ = {{}};  // since the last sync; the first one is durable
  uint64_t operations_ = 0;
};

}  // namespace epochmeter::runfile
