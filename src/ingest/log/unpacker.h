// SPDX-License-Identifier: Apache-2.0
// Takes bytes out of gzip or zstd where they are packed so, and passes all others on. One thread;
// memory does not grow with the file.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace epochmeter::ingest::log {

class Unpacker {
 public:
  using Take = std::function<void(std::string_view)>;

  // `take` gets the text, as views that are good during the call.
  explicit Unpacker(Take take);
  ~Unpacker();

  // The next bytes of the file, in any pieces.
  void Feed(std::string_view bytes);
  // The file's end. Why its text may not be whole; empty when it is.
  std::string Finish();

  bool packed() const { return stream_ != nullptr; }

  class Stream;

 private:
  Take take_;
  bool known_ = false;
  std::string head_;  // too short to tell
  std::unique_ptr<Stream> stream_;
};

}  // namespace epochmeter::ingest::log
