// SPDX-License-Identifier: Apache-2.0
// What the log engine's stages hand on: pieces of text with the place they come from. Texts are
// views, good during the call that gives them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace epochmeter::ingest::log {

// What one line end, carriage return or run of backspaces closes, as UTF-8 and without control
// sequences; never empty, no line end, at most kMostSegmentBytes.
struct Segment {
  std::string_view text;
  uint64_t line = 0;     // physical line, from 1; only '\n' counts
  bool redrawn = false;  // a carriage return, backspaces or a cursor movement follow: text of a bar
  bool cut = false;      // longer than the limit; the rest was counted
};
inline constexpr size_t kMostSegmentBytes = 1024 * 1024;

// A segment without what container runtimes and launchers wrote in front of it.
struct Payload {
  std::string_view text;
  uint64_t line = 0;
  bool redrawn = false;
  // Who wrote it: "pod/train-0/main", "vm-07-05", "TaskRunner pid=12", "rank3"; empty when nobody
  // is named. Lines of different sources are never joined.
  std::string_view source;
  std::optional<int32_t> rank;     // from the wrapper, else of the file
  std::optional<int64_t> wall_ns;  // UTC, from the wrapper or from the clock of the capture
  // The wrapper's time as printed; where its year or zone is missing, wall_ns is not from it.
  std::string_view stamp;
};

// Where a line stands. Files and streams count from 0; a stream is one file's one source.
struct LinePlace {
  uint32_t file = 0;
  uint32_t stream = 0;
  uint64_t line = 0;
  std::optional<int32_t> rank;
  std::optional<int64_t> wall_ns;  // UTC, of its stamp or of the last one before it
};

class TextSink {
 public:
  virtual ~TextSink() = default;
  // Valid UTF-8 that may hold NULs and ends at any character.
  virtual void OnText(std::string_view text) = 0;
};

class SegmentSink {
 public:
  virtual ~SegmentSink() = default;
  virtual void OnSegment(const Segment& segment) = 0;
};

class PayloadSink {
 public:
  virtual ~PayloadSink() = default;
  virtual void OnPayload(const Payload& payload) = 0;
};

}  // namespace epochmeter::ingest::log
