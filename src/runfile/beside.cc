// SPDX-License-Identifier: Apache-2.0
#include "runfile/beside.h"

#include <algorithm>
#include <cerrno>
#include <memory>

namespace epochmeter::runfile {
namespace {

constexpr size_t kBlockBytes = size_t{1} << 20;
constexpr int kMaxNames = 1000;

std::string NameOf(const std::string& path, int number) {
  return number == 0 ? path : path + "." + std::to_string(number);
}

base::Error NoFreeName(const std::string& path) {
  return {.what = "cannot save what the run file would lose",
          .where = path,
          .why = "there are too many files of this name",
          .what_to_do = "move them away",
          .code = EEXIST};
}

// The bytes of `from` after `begin`, block by block; `each` ends it by an error.
template <typename Each>
base::Result<> ForEachBlock(const File& from, uint64_t begin, uint64_t end, Each each) {
  for (uint64_t at = begin; at < end;) {
    const auto size = static_cast<size_t>(std::min<uint64_t>(kBlockBytes, end - at));
    EPM_ASSIGN(const std::string block, from.Read(at, size));
    if (block.size() != size) return base::SystemError("cannot read", from.path(), EIO);
    EPM_TRY(each(at - begin, block));
    at += size;
  }
  return {};
}

base::Result<bool> IsSame(const File& file, const File& from, uint64_t begin, uint64_t end) {
  EPM_ASSIGN(const uint64_t size, file.Size());
  if (size != end - begin) return false;
  bool same = true;
  EPM_TRY(ForEachBlock(from, begin, end,
                       [&](uint64_t offset, const std::string& block) -> base::Result<> {
                         EPM_ASSIGN(const std::string there, file.Read(offset, block.size()));
                         same = same && there == block;
                         return {};
                       }));
  return same;
}

base::Result<> Copy(FileSystem& file_system, File& into, const File& from, uint64_t begin,
                    uint64_t end) {
  EPM_TRY(ForEachBlock(from, begin, end, [&](uint64_t offset, const std::string& block) {
    return into.Write(offset, block);
  }));
  EPM_TRY(into.Sync());
  return file_system.SyncFolderOf(into.path());
}

}  // namespace

base::Result<std::string> SaveRestOf(FileSystem& file_system, const File& from, uint64_t begin,
                                     const std::string& path) {
  EPM_ASSIGN(const uint64_t end, from.Size());
  for (int number = 0; number < kMaxNames; ++number) {
    const std::string name = NameOf(path, number);
    base::Result<std::unique_ptr<File>> file = file_system.Open(name, OpenMode::kCreate);
    if (file.ok()) {
      const base::Result<> copied = Copy(file_system, **file, from, begin, end);
      if (copied.ok()) return name;
      (void)file_system.Remove(name);
      return copied.error();
    }
    if (file.error().code != EEXIST) return file.error();
    file = file_system.Open(name, OpenMode::kReadWrite);
    if (!file.ok()) continue;
    const base::Result<bool> same = IsSame(**file, from, begin, end);
    if (!same.ok() || !*same) continue;
    // Whoever made it may have died before it was durable.
    EPM_TRY((*file)->Sync());
    EPM_TRY(file_system.SyncFolderOf(name));
    return name;
  }
  return NoFreeName(path);
}

base::Result<std::string> RenameToFreeName(FileSystem& file_system, const std::string& from,
                                           const std::string& path) {
  for (int number = 0; number < kMaxNames; ++number) {
    const std::string name = NameOf(path, number);
    const base::Result<std::unique_ptr<File>> there = file_system.Open(name, OpenMode::kRead);
    if (there.ok() || there.error().code != ENOENT) continue;
    EPM_TRY(file_system.Rename(from, name));
    EPM_TRY(file_system.SyncFolderOf(name));
    return name;
  }
  return NoFreeName(path);
}

}  // namespace epochmeter::runfile
