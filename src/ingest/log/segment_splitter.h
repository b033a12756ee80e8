// SPDX-License-Identifier: Apache-2.0
// Cuts text into what a reader of the screen would have seen: lines, and each state of a bar that
// is drawn over. Control sequences are taken out. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "ingest/log/log_line.h"

namespace epochmeter::ingest::log {

// A carriage return, backspaces to the line's begin and movements of the cursor end a segment. A
// shorter run of backspaces gives the state before it and goes on with what it leaves standing.
// Holds at most one segment; what is not touched by control bytes is given as a view into the fed
// bytes.
class SegmentSplitter : public TextSink {
 public:
  // Borrows the sink.
  explicit SegmentSplitter(SegmentSink& sink) : sink_(sink) {}

  // The next UTF-8 text, in any pieces: the segments don't depend on how it is cut.
  void Feed(std::string_view bytes);
  void OnText(std::string_view text) override { Feed(text); }
  // The end: the last line counts also without a line end. More may be fed; its first byte begins a
  // new segment of the same physical line.
  void Finish();

  uint64_t lines() const { return line_ - 1; }  // '\n'
  uint64_t segments() const { return segments_; }
  uint64_t cut_lines() const { return cut_; }        // segments beyond kMostSegmentBytes
  uint64_t bad_bytes() const { return bad_bytes_; }  // NULs and other control bytes, dropped
  // Text that waits for its end.
  bool pending() const { return !held_.empty(); }

 private:
  enum class Escape : uint8_t { kNone, kBegin, kCharset, kSequence, kString, kStringEnd };
  static constexpr size_t kMostParameters = 64;
  static constexpr size_t kMostString = 4096;
  static constexpr size_t kMostEmulated = 512;
  static constexpr size_t kMostSpaces = 512;

  const char* Control(const char* run, const char* at, const char* end);
  const char* LineEnd(const char* run, const char* at);
  const char* CarriageReturn(const char* run, const char* at, const char* end);
  const char* Backspaces(const char* run, const char* at, const char* end);
  const char* Dropped(const char* at, const char* end);
  const char* ReadEscape(const char* at, const char* end);
  bool EscapeByte(char c);
  void Sequence(char final);
  void MoveTo(size_t column);
  void Resolve();
  void GoBack(uint64_t characters);
  void Append(std::string_view text);
  void Give(std::string_view text, bool redrawn);
  void GiveHeld(bool redrawn);

  SegmentSink& sink_;
  std::string held_;  // of the segment that is not ended yet, as far as it had to be copied
  bool cut_held_ = false;
  bool return_open_ = false;  // carriage returns, and not yet known what follows
  uint64_t backspaces_ = 0;   // as open
  Escape escape_ = Escape::kNone;
  size_t escape_length_ = 0;
  std::array<char, kMostParameters> parameters_{};
  uint64_t line_ = 1;
  uint64_t segments_ = 0;
  uint64_t cut_ = 0;
  uint64_t bad_bytes_ = 0;
};

}  // namespace epochmeter::ingest::log
