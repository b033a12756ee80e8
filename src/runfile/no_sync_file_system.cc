// SPDX-License-Identifier: Apache-2.0
#include "runfile/no_sync_file_system.h"

#include <utility>

namespace epochmeter::runfile {
namespace {

class NoSyncFile : public File {
 public:
  NoSyncFile(std::unique_ptr<File> real, std::atomic<uint64_t>* read_bytes)
      : File(real->path()), real_(std::move(real)), read_bytes_(read_bytes) {}

  base::Result<size_t> ReadSome(uint64_t offset, char* into, size_t size) const override {
    base::Result<size_t> got = real_->ReadSome(offset, into, size);
    if (got.ok()) *read_bytes_ += *got;
    return got;
  }
  base::Result<size_t> WriteSome(uint64_t offset, std::string_view bytes) override {
    return real_->WriteSome(offset, bytes);
  }
  base::Result<uint64_t> Size() const override { return real_->Size(); }
  base::Result<> Truncate(uint64_t size) override { return real_->Truncate(size); }
  base::Result<> Sync() override { return {}; }
  base::Result<bool> Lock() override { return real_->Lock(); }
  bool IsAt(const std::string& path) const override { return real_->IsAt(path); }
  std::string PathNow() const override { return real_->PathNow(); }

 private:
  std::unique_ptr<File> real_;
  std::atomic<uint64_t>* const read_bytes_;
};

}  // namespace

base::Result<std::unique_ptr<File>> NoSyncFileSystem::Open(const std::string& path, OpenMode mode) {
  EPM_ASSIGN(std::unique_ptr<File> real, real_.Open(path, mode));
  return std::unique_ptr<File>(std::make_unique<NoSyncFile>(std::move(real), &read_bytes_));
}

}  // namespace epochmeter::runfile
