// SPDX-License-Identifier: Apache-2.0
// One file that only grows by frames. One thread.
#pragma once

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
  Appender(std::unique_ptr<File> file, uint64_t end, uint32_t sequence)
      : file_(std::move(file)), end_(end), sequence_(sequence) {}

  // Writes and syncs one frame. Gives the bytes written.
  base::Result<uint64_t> Append(FrameHeader header, std::string_view payload) {
    if (dirty_) {
      EPM_TRY(file_->Truncate(end_));
      dirty_ = false;
    }
    header.sequence = sequence_;
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

  bool open() const { return file_ != nullptr; }
  void Close() { file_.reset(); }
  uint32_t sequence() const { return sequence_; }
  // Whether `path` still leads to this file; true when that can't be found out.
  bool StillAt(const std::string& path) const { return file_ != nullptr && file_->IsAt(path); }

 private:
  std::unique_ptr<File> file_;
  uint64_t end_ = 0;
  uint32_t sequence_ = 0;
  bool dirty_ = false;
};

}  // namespace epochmeter::runfile
