// SPDX-License-Identifier: Apache-2.0
// What a family of events is made of: words that announce it, and a function that reads a line with
// such words. One file and one line in event_kinds.cc each.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "ingest/log/log_record.h"

namespace epochmeter::ingest::log {

// A line without wrapper, as printed.
struct EventLine {
  const LinePlace& place;
  std::string_view text;
};

// An event whose text goes on over lines. A stream has few open at a time.
class EventBlock {
 public:
  enum class Take : uint8_t {
    kTaken,   // the line belongs to the block alone
    kLooked,  // others may read it as well
    kOver     // the block had ended before this line
  };
  virtual ~EventBlock() = default;
  virtual Take Next(const EventLine& line) = 0;
  // The last line was the block's end.
  virtual bool Done() const = 0;
  // A family made an event of the line that was just looked at.
  virtual void Claimed() {}
  // Says what was found; called once.
  virtual void End(class EventContext& context) = 0;
};

// What families remember of a stream from line to line.
struct EventMemory {
  uint64_t kernel_kill_line = 0;  // of the last "oom-kill:" line; 0: none
  uint64_t slurm_kill_line = 0;   // of the last "exceeded memory limit"
  uint64_t traceback_line = 0;    // of the last traceback
  std::string_view chain;         // how the next traceback hangs on it: "cause", "context"
  uint32_t peers_not_ready = 0;   // lines of waiting, in a row
  uint64_t peers_not_ready_line = 0;
};

class EventContext {
 public:
  virtual ~EventContext() = default;
  virtual void Emit(LogEvent event) = 0;
  // Emits once a training record is known that stands before it in its file.
  virtual void EmitIfTrained(LogEvent event) = 0;
  virtual void Open(std::unique_ptr<EventBlock> block) = 0;
  virtual EventMemory& memory() = 0;
};

// A block of one event, to which its later lines only add.
class OneEventBlock : public EventBlock {
 public:
  explicit OneEventBlock(LogEvent event) : event_(std::move(event)) {}
  bool Done() const override { return done_; }
  void End(EventContext& context) override { context.Emit(std::move(event_)); }

 protected:
  LogEvent event_;
  int lines_ = 0;  // looked at
  bool done_ = false;
};

struct EventFamily {
  std::string_view name;
  // Letters only, four or more: a line is read when the letters of one stand in it in a row,
  // whatever digits, spaces and signs stand between.
  std::span<const std::string_view> anchors;
  // Whether the line is the family's: the first one that says so gets it.
  bool (*read)(const EventLine& line, EventContext& context);
};

}  // namespace epochmeter::ingest::log
