// SPDX-License-Identifier: Apache-2.0
// One file of a log from its begin to its end, packed or not.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace epochmeter::cli {

class LogPart {
 public:
  // Opens it; "-" is stdin. A pipe waits for its writer.
  static base::Result<LogPart> Open(const std::string& path);

  // The begin of its text; `tail`: its end, of a file that is not packed. 64 KiB at most; both
  // empty where that would take them from the stream.
  std::string Head() const;
  std::string Tail() const;

  // Gives `take` the text, in pieces, as far as it is there: to the size that the file has when its
  // size at the begin was read. `going_on` is asked now and then; false ends the reading.
  // An error when it could not be read to its end; what came before was given.
  base::Result<> Read(const std::function<void(std::string_view)>& take,
                      const std::function<bool()>& going_on);

  // What is odd about what was read; a sentence each.
  const std::vector<std::string>& warnings() const { return warnings_; }
  bool regular() const { return regular_; }
  int fd() const { return fd_.get(); }

 private:
  LogPart(std::string path, base::UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  base::UniqueFd fd_;
  bool regular_ = false;
  uint64_t size_ = 0;  // when it was opened
  std::vector<std::string> warnings_;
};

}  // namespace epochmeter::cli
