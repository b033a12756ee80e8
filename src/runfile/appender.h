// SPDX-License-Identifier: Apache-2.0
// One file that only grows by frames. One thread.
#pragma once

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "runfile/file_system.h"
#include "runfile/frame.h"

namespace epochmeter::runfile {

// A failed append leaves `end` where it was: the next one cuts the file there first, so that no
// half-written frame stays behind a shorter one.
class Appender {
 public:
  Appender() = default;
  Appender(std::unique_ptr<File> file, uint64_t end, uint64_t sequence)
      : file_(std::move(file)), end_(end), sequence_(sequence) {}

  // Writes and syncs one frame. Gives the bytes written.
  base::Result<uint64_t> Append(FrameHeader header, std::string_view payload) {
    if (dirty_) {
      EPM_TRY(file_->Truncate(end_));
      dirty_ = false;
    }
    header.sequence = static_cast<uint32_t>(sequence_);
    const std::string bytes = EncodeFrame(header, end_, payload);
    dirty_ = true;
    EPM_TRY(file_->Write(end_, bytes));
    EPM_TRY(file_->Sync());
    dirty_ = false;
    end_ += bytes.size();
    ++sequence_;
    return uint64_t{bytes.size()};
  }
  // A torn end of a former writer counts as a failed append of ours.
  void MarkDirty() { dirty_ = true; }
  // Cuts what a failed append left, as far as the file system lets us.
  void CutBack() {
    if (dirty_ && file_->Truncate(end_).ok()) dirty_ = false;
  }

  // Opens the file anew, when `header` is what it begins with and nothing of it is gone.
  base::Result<> Reopen(FileSystem& file_system, const std::string& path,
                        const std::string& header) {
    EPM_ASSIGN(std::unique_ptr<File> fresh, file_system.Open(path, OpenMode::kReadWrite));
    EPM_ASSIGN(const std::string begin, fresh->Read(0, header.size()));
    EPM_ASSIGN(const uint64_t size, fresh->Size());
    if (begin != header || size < end_) return base::SystemError("cannot go on with", path, ESTALE);
    file_ = std::move(fresh);
    dirty_ = true;
    return {};
  }

  bool open() const { return file_ != nullptr; }
  File& file() { return *file_; }
  void Close() { file_.reset(); }
  uint64_t sequence() const { return sequence_; }
  // Whether `path` still leads to this file; true when that can't be found out.
  bool StillAt(const std::string& path) const { return file_ != nullptr && file_->IsAt(path); }

 private:
  std::unique_ptr<File> file_;
  uint64_t end_ = 0;
  uint64_t sequence_ = 0;  // a frame has its low 32 bits
  bool dirty_ = false;
};

}  // namespace epochmeter::runfile
