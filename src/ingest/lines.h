// SPDX-License-Identifier: Apache-2.0
// Lines of a text file, gzip-compressed or plain. zlib's errors end here.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace epochmeter::ingest {

class LineReader {
 public:
  // kBroken: the compressed data end early or are damaged; what came before was given. kTooLong: a
  // line beyond the limit was skipped.
  enum class Next : uint8_t { kLine, kTooLong, kBroken, kEnd };

  static base::Result<LineReader> Open(const std::string& path);
  // The first bytes, unpacked, at most `limit`.
  static base::Result<std::string> ReadBegin(const std::string& path, size_t limit);

  // `line` has no line end and is good until the next call. After kBroken and kEnd comes kEnd. The
  // last line counts also without a line end.
  Next Read(std::string_view* line);
  uint64_t line_number() const { return line_number_; }
  const std::string& name() const { return name_; }  // without folders

 private:
  struct Close {
    void operator()(gzFile file) const { gzclose(file); }
  };
  using Handle = std::unique_ptr<gzFile_s, Close>;

  LineReader(Handle file, std::string name) : file_(std::move(file)), name_(std::move(name)) {}
  bool Fill();

  Handle file_;
  std::string name_;
  std::string buffer_;
  size_t used_ = 0;  // of the buffer
  bool ended_ = false;
  bool broken_ = false;
  uint64_t line_number_ = 0;
};

}  // namespace epochmeter::ingest
