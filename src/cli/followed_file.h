// SPDX-License-Identifier: Apache-2.0
// One log that is written while it is read, whatever its name stands for in the course of time:
// what `tail -F` does, and no line lost where it can be known. One thread; never waits.
//
// Renamed: what is written to the old file is read as long as the new one is empty, then until it
// has been quiet for 200 ms (500 ms at most); whole lines that still come to it in the next 5 s are
// read too. Truncated: the text begins anew; what had not been read of the old one stands in a copy
// beside it, if there is one that goes on as the file did. Removed: waits for the next file of this
// name.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "ingest/log/unpacker.h"

namespace epochmeter::cli {

class FollowSink {
 public:
  virtual ~FollowSink() = default;
  // The texts of all files of the name, one behind the other; each begins with a new line.
  virtual void OnText(std::string_view bytes) = 0;
  // A sentence for the user.
  virtual void OnTold(const std::string& sentence) = 0;
};

class FollowedFile {
 public:
  // Borrows the sink. `lines`: of the log that were read before, for what is told.
  FollowedFile(std::string path, FollowSink& sink, uint64_t lines = 0);

  // Opens what has the name now, and reads what is new: `most_bytes`, or some more. How much it
  // was. `t_ns` is CLOCK_MONOTONIC here and below.
  size_t Look(int64_t t_ns, size_t most_bytes);
  // There will be few more looks: none waits for what may still come to an old file.
  void Hurry() { hurry_ = true; }
  // After the last look: what is held back goes out.
  void End();

  // Of the file that is read; -1: none.
  int fd() const { return now_ ? now_->fd.get() : -1; }
  // The last line is not ended.
  bool open_line() const { return open_line_; }

 private:
  struct Text {
    base::UniqueFd fd;
    dev_t device = 0;
    ino_t inode = 0;
    uint64_t offset = 0;
    std::string last;  // the bytes before `offset`, by which the text is known
    std::unique_ptr<ingest::log::Unpacker> unpacker;
    int64_t fed_ns = 0;    // when something came last
    int64_t until_ns = 0;  // late: when it is given up
    std::string held;      // late: not given yet
  };

  void LookAtName(int64_t t_ns);
  void Open();
  void LookForTruncation();
  bool ReadCopy(const Text& text);
  size_t Read(Text& text, int64_t t_ns, size_t most_bytes);
  bool Advance(int64_t t_ns);
  size_t ReadLate(int64_t t_ns, size_t most_bytes);
  void GiveLate(Text& text, bool all);
  void Give(std::string_view bytes);
  void EndText(Text& text);
  void EndLine();
  void Tell(const std::string& words);
  void TellOnce(const std::string& words);
  std::string NextLine() const;

  std::string path_;
  FollowSink& sink_;
  std::optional<Text> now_;
  std::deque<Text> next_;  // what got the name since
  std::deque<Text> late_;
  bool late_read_ = false;  // what is read is of a late file
  bool open_line_ = false;
  bool hurry_ = false;
  uint64_t lines_ = 0;
  std::optional<int64_t> moved_ns_;    // since when the next file has text
  std::optional<int64_t> missing_ns_;  // since when no file has the name
  std::string told_;                   // what is in the way
};

}  // namespace epochmeter::cli
