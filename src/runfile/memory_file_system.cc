// SPDX-License-Identifier: Apache-2.0
#include "runfile/memory_file_system.h"

#include <algorithm>
#include <cerrno>

namespace epochmeter::runfile {

class MemoryFile : public File {
 public:
  MemoryFile(std::string path, MemoryFileSystem& file_system,
             std::shared_ptr<MemoryFileSystem::Inode> inode)
      : File(std::move(path)), file_system_(file_system), inode_(std::move(inode)) {}
  ~MemoryFile() override {
    if (holds_lock_) inode_->locked = false;
  }

  base::Result<size_t> ReadSome(uint64_t offset, char* into, size_t size) const override {
    if (offset >= inode_->now.size()) return size_t{0};
    return inode_->now.copy(into, size, static_cast<size_t>(offset));
  }

  base::Result<size_t> WriteSome(uint64_t offset, std::string_view bytes) override {
    size_t allowed = bytes.size();
    const base::Result<> begun = file_system_.Begin("cannot write", &allowed);
    if (begun.ok()) allowed = std::min(allowed, file_system_.longest_write_bytes);
    const uint64_t growth =
        offset + allowed > inode_->now.size() ? offset + allowed - inode_->now.size() : 0;
    const uint64_t room = file_system_.capacity_bytes - file_system_.UsedBytes();
    const bool full = growth > room;
    if (full) allowed -= static_cast<size_t>(std::min<uint64_t>(allowed, growth - room));
    if (allowed > 0) {
      Change({.offset = offset, .bytes = std::string(bytes.substr(0, allowed)), .truncate = {}});
    }
    if (!begun.ok()) return begun.error();
    if (allowed == 0 && full) return base::SystemError("cannot write", path(), ENOSPC);
    return allowed;
  }

  base::Result<uint64_t> Size() const override { return uint64_t{inode_->now.size()}; }

  base::Result<> Truncate(uint64_t size) override {
    size_t unused = 0;
    EPM_TRY(file_system_.Begin("cannot cut", &unused));
    Change({.offset = 0, .bytes = {}, .truncate = size});
    return {};
  }

  base::Result<> Sync() override {
    size_t unused = 0;
    EPM_TRY(file_system_.Begin("cannot sync", &unused));
    inode_->durable = inode_->now;
    inode_->unsynced.clear();
    return {};
  }

  base::Result<bool> Lock() override {
    if (inode_->locked && !holds_lock_) {
      return base::Error{.what = "the run file is being written by another process",
                         .where = path(),
                         .code = EAGAIN};
    }
    inode_->locked = holds_lock_ = true;
    return true;
  }

  bool IsAt(const std::string& path) const override {
    const auto found = file_system_.names_.find(path);
    return found != file_system_.names_.end() && found->second == inode_;
  }

  std::string PathNow() const override {
    for (const auto& [name, inode] : file_system_.names_) {
      if (inode == inode_) return name;
    }
    return path() + " (deleted)";
  }

 private:
  void Change(MemoryFileSystem::Change change) {
    MemoryFileSystem::Apply(change, inode_->now);
    inode_->unsynced.push_back(std::move(change));
  }

  MemoryFileSystem& file_system_;
  std::shared_ptr<MemoryFileSystem::Inode> inode_;
  bool holds_lock_ = false;
};

void MemoryFileSystem::Apply(const Change& change, std::string& bytes) {
  if (change.truncate) {
    bytes.resize(static_cast<size_t>(*change.truncate));
    return;
  }
  const auto offset = static_cast<size_t>(change.offset);
  bytes.resize(std::max(bytes.size(), offset + change.bytes.size()));
  bytes.replace(offset, change.bytes.size(), change.bytes);
}

base::Result<> MemoryFileSystem::Begin(const std::string& what, size_t* allowed_bytes) {
  const uint64_t number = operations_++;
  const std::optional<Fault> fault = on_operation ? on_operation(number) : std::nullopt;
  if (!fault) return {};
  *allowed_bytes = std::min(*allowed_bytes, fault->written_bytes);
  return base::SystemError(what, "memory", fault->error);
}

uint64_t MemoryFileSystem::UsedBytes() const {
  uint64_t used = 0;
  for (const auto& [name, inode] : names_) used += inode->now.size();
  return used;
}

base::Result<std::unique_ptr<File>> MemoryFileSystem::Open(const std::string& path, OpenMode mode) {
  const auto found = names_.find(path);
  const bool exists = found != names_.end();
  if (mode == OpenMode::kCreate && exists) return base::SystemError("cannot open", path, EEXIST);
  if ((mode == OpenMode::kRead || mode == OpenMode::kReadWrite) && !exists) {
    return base::SystemError("cannot open", path, ENOENT);
  }
  std::unique_ptr<File> file;
  if (exists) {
    file = std::make_unique<MemoryFile>(path, *this, found->second);
    if (mode == OpenMode::kReplace) EPM_TRY(file->Truncate(0));
    return file;
  }
  size_t unused = 0;
  EPM_TRY(Begin("cannot create", &unused));
  names_[path] = std::make_shared<Inode>();
  folder_states_.push_back(names_);
  file = std::make_unique<MemoryFile>(path, *this, names_[path]);
  return file;
}

base::Result<> MemoryFileSystem::Rename(const std::string& from, const std::string& to) {
  size_t unused = 0;
  EPM_TRY(Begin("cannot rename", &unused));
  const auto found = names_.find(from);
  if (found == names_.end()) return base::SystemError("cannot rename", from, ENOENT);
  names_[to] = found->second;
  names_.erase(from);
  folder_states_.push_back(names_);
  return {};
}

base::Result<> MemoryFileSystem::Remove(const std::string& path) {
  size_t unused = 0;
  EPM_TRY(Begin("cannot remove", &unused));
  if (names_.erase(path) == 0) return base::SystemError("cannot remove", path, ENOENT);
  folder_states_.push_back(names_);
  return {};
}

base::Result<> MemoryFileSystem::SyncFolderOf(const std::string&) {
  size_t unused = 0;
  EPM_TRY(Begin("cannot sync", &unused));
  folder_states_ = {names_};
  return {};
}

std::string MemoryFileSystem::Bytes(const std::string& path) const {
  const auto found = names_.find(path);
  return found == names_.end() ? "" : found->second->now;
}

void MemoryFileSystem::SetBytes(const std::string& path, std::string bytes) {
  auto inode = std::make_shared<Inode>();
  inode->now = inode->durable = std::move(bytes);
  names_[path] = std::move(inode);
  folder_states_ = {names_};
}

void MemoryFileSystem::CopyFrom(const MemoryFileSystem& other) {
  for (const auto& [name, inode] : other.names_) SetBytes(name, inode->now);
}

void MemoryFileSystem::PowerFail(Loss loss, RandomRecords& random, MemoryFileSystem& image) const {
  // Folders are journaled: some prefix of the changes survives.
  const size_t state = loss == Loss::kAllUnsynced ? 0
                       : loss == Loss::kNothing   ? folder_states_.size() - 1
                                                  : random.Below(folder_states_.size());
  for (const auto& [name, inode] : folder_states_[state]) {
    std::string bytes = inode->durable;
    for (Change change : inode->unsynced) {
      if (loss == Loss::kAllUnsynced) break;
      if (loss != Loss::kNothing && random.Chance(0.5)) continue;
      if (loss == Loss::kTornWrites && !change.truncate && random.Chance(0.5)) {
        // Sectors reach the disk in any order: keep a part that begins and ends at some of them.
        const size_t from = random.Below(change.bytes.size() + 1) / 512 * 512;
        change.offset += from;
        change.bytes = change.bytes.substr(from, random.Below(change.bytes.size() - from + 1));
      }
      Apply(change, bytes);
    }
    image.SetBytes(name, std::move(bytes));
  }
}

}  // namespace epochmeter::runfile
