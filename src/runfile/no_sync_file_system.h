// SPDX-License-Identifier: Apache-2.0
// The real file system, but nothing is ever synced: for tests and benchmarks that write more than a
// disk could sync. Counts what is read.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "runfile/file_system.h"

namespace epochmeter::runfile {

class NoSyncFileSystem : public FileSystem {
 public:
  base::Result<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override;
  base::Result<> CheckRegularOrAbsent(const std::string& path) override {
    return real_.CheckRegularOrAbsent(path);
  }
  base::Result<> Rename(const std::string& from, const std::string& to) override {
    return real_.Rename(from, to);
  }
  base::Result<> Remove(const std::string& path) override { return real_.Remove(path); }
  base::Result<> SyncFolderOf(const std::string&) override { return {}; }

  uint64_t read_bytes() const { return read_bytes_; }

 private:
  FileSystem& real_ = PosixFileSystem();
  std::atomic<uint64_t> read_bytes_ = 0;
};

}  // namespace epochmeter::runfile
