// SPDX-License-Identifier: Apache-2.0
// The bytes of a log as UTF-8, whatever mixture of encodings they have. One thread.
#pragma once

#include <iconv.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "ingest/log/log_line.h"

namespace epochmeter::ingest::log {

// Stretches of text by what they were decoded from, and bytes that were no text.
struct DecoderCounts {
  uint64_t bad_bytes = 0;  // given as U+FFFD
  uint64_t utf16 = 0;
  uint64_t gb18030 = 0;
  uint64_t shift_jis = 0;
};

// UTF-8 goes through as it is, as views into the fed bytes. UTF-16 is known by its mark or by its
// NULs, also behind a begin in UTF-8 (a shell that appends). What is no UTF-8 is judged line by
// line: GB18030 or Shift-JIS where all of it makes sense so, else broken UTF-8.
class TextDecoder {
 public:
  // Borrows the sink.
  explicit TextDecoder(TextSink& sink) : sink_(sink) {}

  // The next bytes of the file, in any pieces. Holds back at most kMostHeld bytes: the part of the
  // last line from its first byte that is not ASCII on.
  void Feed(std::string_view bytes);
  // The end of the file; what was held back goes out.
  void Finish();

  const DecoderCounts& counts() const { return counts_; }

 private:
  enum class Mode : uint8_t { kBegin, kText, kLittleEndian, kBigEndian };
  static constexpr size_t kMostHeld = 64 * 1024;

  size_t FeedHeldLine(std::string_view bytes);
  size_t FeedHeldBegin(std::string_view bytes);
  size_t Consume(std::string_view bytes, bool last);
  size_t Begin(std::string_view bytes, bool last);
  size_t Text(std::string_view bytes, bool last);
  size_t Nul(std::string_view bytes, bool last);
  size_t Utf16(std::string_view bytes, bool last);
  size_t Utf16Line(std::string_view bytes, bool last);
  void Lines(std::string_view text);
  void Stretch(std::string_view bytes);
  bool Convert(const char* encoding, std::string_view bytes);
  void Repair(std::string_view bytes);
  size_t GiveAscii(std::string_view text);
  void Give(std::string_view text);

  struct Close {
    void operator()(void* handle) const { iconv_close(handle); }
  };

  TextSink& sink_;
  Mode mode_ = Mode::kBegin;
  bool line_begin_ = true;  // UTF-16: the last unit was a line end
  bool utf8_seen_ = false;  // characters of three bytes or more
  int last_ = -1;           // byte given; -1 at the begin
  std::string held_;
  std::string out_;
  const char* encoding_ = nullptr;  // of converter_
  std::unique_ptr<void, Close> converter_;
  DecoderCounts counts_;
};

}  // namespace epochmeter::ingest::log
