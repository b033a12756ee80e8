// SPDX-License-Identifier: Apache-2.0
// Making the files of a new run, at once or as soon as the disk allows.
#include <cerrno>
#include <memory>
#include <random>
#include <utility>

#include "runfile/beside.h"
#include "runfile/frame.h"
#include "runfile/run_writer.h"
#include "runfile/writer.h"

namespace epochmeter::runfile {
namespace {

FileId RandomId() {
  std::random_device device;
  FileId id;
  for (uint8_t& byte : id) byte = static_cast<uint8_t>(device());
  return id;
}

}  // namespace

base::Result<> Writer::ClearPath() {
  const std::string tail = TailPath(path_);
  for (const std::string& path : {path_, tail, tail + ".new"}) {
    EPM_TRY(file_system_.CheckRegularOrAbsent(path));
  }
  if (options_.force) {
    // The lock makes sure that no living writer is robbed of its file.
    auto old = file_system_.Open(path_, OpenMode::kReadWrite);
    if (old.ok()) EPM_TRY((*old)->Lock());
    for (const std::string& path : {path_, tail}) {
      base::Result<> removed = file_system_.Remove(path);
      if (!removed.ok() && removed.error().code != ENOENT) return removed;
    }
  }
  return {};
}

// With the lock of a new main file: nobody else makes a tail here now. One that still writes to a
// main file that was removed goes on in its own tail, whatever that is called.
base::Result<> Writer::KeepStrayTail() {
  const std::string tail = TailPath(path_);
  if (!file_system_.Open(tail, OpenMode::kRead).ok()) return {};
  EPM_ASSIGN(kept_tail_, RenameToFreeName(file_system_, tail, tail + ".old"));
  return {};
}

base::Result<> Writer::OpenMain() {
  EPM_TRY(ClearPath());
  base::Result<std::unique_ptr<File>> file = file_system_.Open(path_, OpenMode::kCreate);
  if (!file.ok()) {
    base::Error error = file.error();
    error.what = "cannot create the run file";
    if (error.code == EEXIST) error.what_to_do = "choose another path, or use --force";
    return error;
  }
  id_ = RandomId();
  main_ = Appender(std::move(*file), kFileHeaderBytes, 0);
  created_ = true;  // from here on a failure takes the files away again
  return {};
}

base::Result<> Writer::MakeMain() {
  if (!main_.open()) EPM_TRY(OpenMain());
  EPM_ASSIGN(locked_, main_.file().Lock());
  EPM_TRY(FindMain());
  if (kept_tail_.empty()) EPM_TRY(KeepStrayTail());
  EPM_TRY(main_.file().Write(0, EncodeFileHeader({.kind = FileKind::kMain, .id = id_})));
  EPM_TRY(main_.file().Sync());
  stats_.bytes_written += kFileHeaderBytes;
  main_made_ = true;
  tail_sealed_ = true;  // there is none yet
  return {};
}

// A file server that came back may not know our open files any more. What can't be opened anew now
// is tried again when the next flush fails.
void Writer::Reopen() {
  if (!main_made_) return;
  const base::Result<> main =
      main_.Reopen(file_system_, path_, EncodeFileHeader({.kind = FileKind::kMain, .id = id_}));
  if (main.ok()) (void)main_.file().Lock();
  if (tail_sealed_) return;
  (void)tail_.Reopen(
      file_system_, TailPath(path_),
      EncodeFileHeader({.kind = FileKind::kTail, .id = id_, .generation = tail_generation_}));
}

base::Result<> Writer::CreateFiles() {
  base::Result<> made = MakeMain();
  if (made.ok()) made = CreateTail({});
  if (!made.ok() && options_.wait_for_disk && MayPass(made.error())) return {};
  return made;
}

base::Result<std::unique_ptr<RunWriter>> RunWriter::Create(const std::string& path,
                                                           const Options& options) {
  auto writer = std::make_unique<Writer>(path, options);
  EPM_TRY(writer->CreateFiles());
  return std::unique_ptr<RunWriter>(std::move(writer));
}

}  // namespace epochmeter::runfile
