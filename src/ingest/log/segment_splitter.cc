// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/segment_splitter.h"

#include <algorithm>
#include <utility>

#include "ingest/log/byte_scan.h"

namespace epochmeter::ingest::log {
namespace {

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// What stands before the last `characters` of a UTF-8 text; 0 when there are no more than that.
size_t BytesBefore(std::string_view text, uint64_t characters) {
  if (characters >= text.size()) return 0;
  size_t at = text.size();
  while (at > 0 && characters > 0) {
    --at;
    while (at > 0 && IsContinuation(text[at])) --at;
    --characters;
  }
  return at;
}

// At most the limit, and no half of a character.
std::string_view CutText(std::string_view text) {
  size_t at = kMostSegmentBytes;
  while (at > 0 && IsContinuation(text[at])) --at;
  return text.substr(0, at);
}

std::string_view Between(const char* begin, const char* end) {
  return {begin, static_cast<size_t>(end - begin)};
}

}  // namespace

void SegmentSplitter::Feed(std::string_view bytes) {
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  ControlScanner scanner(at, end);
  while (at != end) {
    if (escape_ != Escape::kNone) {
      at = ReadEscape(at, end);
      continue;
    }
    if (return_open_ || backspaces_ > 0) {
      if (*at == '\b' && !return_open_) {
        at = Backspaces(at, at, end);
        continue;
      }
      if (*at == '\r' && return_open_) {
        ++at;
        continue;
      }
      if (*at == '\n' && return_open_) return_open_ = false;
      Resolve();
    }
    const char* control = scanner.Next(at);
    if (control == end) {
      Append(Between(at, end));
      return;
    }
    at = Control(at, control, end);
  }
}

void SegmentSplitter::Finish() {
  Resolve();
  escape_ = Escape::kNone;
  GiveHeld(false);
}

// `run` is text up to the control byte at `at`. Returns where to go on.
const char* SegmentSplitter::Control(const char* run, const char* at, const char* end) {
  switch (*at) {
    case '\n':
      return LineEnd(run, at);
    case '\r':
      return CarriageReturn(run, at, end);
    case '\b':
      return Backspaces(run, at, end);
    case '\x1b':
      Append(Between(run, at));
      escape_ = Escape::kBegin;
      escape_length_ = 0;
      return at + 1;
    default:
      Append(Between(run, at));
      return Dropped(at, end);
  }
}

const char* SegmentSplitter::LineEnd(const char* run, const char* at) {
  if (held_.empty()) {
    Give(Between(run, at), false);
  } else {
    Append(Between(run, at));
    GiveHeld(false);
  }
  ++line_;
  return at + 1;
}

const char* SegmentSplitter::CarriageReturn(const char* run, const char* at, const char* end) {
  const char* next = at + 1;
  while (next != end && *next == '\r') ++next;
  if (next != end && held_.empty()) {
    if (*next == '\n') return LineEnd(run, at) + (next - at);
    Give(Between(run, at), true);
    return next;
  }
  Append(Between(run, at));
  return_open_ = true;
  return next;
}

const char* SegmentSplitter::Backspaces(const char* run, const char* at, const char* end) {
  const char* next = at;
  while (next != end && *next == '\b') ++next;
  const auto count = static_cast<uint64_t>(next - at);
  if (next != end && held_.empty() && backspaces_ == 0 &&
      count >= static_cast<uint64_t>(at - run)) {
    Give(Between(run, at), true);
    return next;
  }
  Append(Between(run, at));
  backspaces_ += count;
  return next;
}

// Runs of NULs are common: a truncated file that is still written to begins with them.
const char* SegmentSplitter::Dropped(const char* at, const char* end) {
  const char* next = at + 1;
  if (*at == '\0') next = SkipNuls(next, end);
  bad_bytes_ += static_cast<uint64_t>(next - at);
  return next;
}

const char* SegmentSplitter::ReadEscape(const char* at, const char* end) {
  while (at != end && escape_ != Escape::kNone) {
    if (!EscapeByte(*at)) return at;
    ++at;
  }
  return at;
}

// False when the byte does not belong to the sequence any more, which is then given up.
bool SegmentSplitter::EscapeByte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  const Escape state = escape_;
  escape_ = Escape::kNone;
  if (state == Escape::kString || state == Escape::kStringEnd) {
    if (c == '\n' || ++escape_length_ > kMostString) return false;
    if (c == '\a' || (c == '\\' && state == Escape::kStringEnd)) return true;
    escape_ = c == '\x1b' ? Escape::kStringEnd : Escape::kString;
    return true;
  }
  if (byte < 0x20 || byte > 0x7e) return false;
  if (state == Escape::kSequence) {
    if (byte >= 0x40) {
      Sequence(c);
      return true;
    }
    if (escape_length_ == kMostParameters) return false;
    parameters_[escape_length_++] = c;
    escape_ = Escape::kSequence;
    return true;
  }
  if (byte < 0x30) {  // "\x1b(B" chooses a character set
    escape_ = Escape::kCharset;
    return true;
  }
  if (state == Escape::kCharset) return true;
  if (c == '[') escape_ = Escape::kSequence;
  if (c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_') escape_ = Escape::kString;
  if (c == 'M' || c == 'D' || c == 'E' || c == 'c') GiveHeld(true);  // to another line
  return true;
}

// A control sequence by its last byte. Colours and modes do nothing.
void SegmentSplitter::Sequence(char final) {
  size_t number = 0;
  bool given = false;
  for (size_t i = 0; i < escape_length_ && parameters_[i] >= '0' && parameters_[i] <= '9'; ++i) {
    number = std::min<size_t>(number * 10 + static_cast<size_t>(parameters_[i] - '0'), 1U << 20);
    given = true;
  }
  const size_t count = std::max<size_t>(number, 1);
  switch (final) {
    case 'A':  // up, down, to the begin of another line, to a place, erase screen
    case 'B':
    case 'E':
    case 'F':
    case 'H':
    case 'f':
    case 'J':
    case 'S':
    case 'T':
    case 'd':
      return GiveHeld(true);
    case 'C':
      return Append(std::string(std::min(count, kMostSpaces), ' '));
    case 'D':
      return GoBack(count);
    case 'G':
      return MoveTo(count - 1);
    case 'K':  // 0: what follows; 1 and 2: also what stands
      if (given && number > 0) GiveHeld(true);
      return;
    default:
      return;
  }
}

void SegmentSplitter::MoveTo(size_t column) {
  const auto characters = static_cast<size_t>(
      std::count_if(held_.begin(), held_.end(), [](char c) { return !IsContinuation(c); }));
  if (column < characters) return GoBack(characters - column);
  Append(std::string(std::min(column - characters, kMostSpaces), ' '));
}

// Carriage returns and backspaces take effect with what follows them.
void SegmentSplitter::Resolve() {
  if (return_open_) {
    return_open_ = false;
    GiveHeld(true);
  }
  if (backspaces_ > 0) GoBack(std::exchange(backspaces_, 0));
}

void SegmentSplitter::GoBack(uint64_t characters) {
  if (held_.empty()) return;
  const size_t kept = cut_held_ ? 0 : BytesBefore(held_, characters);
  if (kept == 0) return GiveHeld(true);
  // A long line with many short runs would be given again and again.
  if (held_.size() <= kMostEmulated) Give(held_, true);
  held_.resize(kept);
}

void SegmentSplitter::Append(std::string_view text) {
  if (text.empty() || cut_held_) return;
  const size_t room = kMostSegmentBytes - held_.size();
  if (text.size() <= room) {
    held_.append(text);
    return;
  }
  held_.append(text.substr(0, room + 1));
  held_.resize(CutText(held_).size());
  cut_held_ = true;
}

void SegmentSplitter::Give(std::string_view text, bool redrawn) {
  if (text.empty()) return;
  Segment segment{.text = text, .line = line_, .redrawn = redrawn, .cut = cut_held_};
  if (text.size() > kMostSegmentBytes) {
    segment.text = CutText(text);
    segment.cut = true;
  }
  ++segments_;
  if (segment.cut) ++cut_;
  sink_.OnSegment(segment);
}

void SegmentSplitter::GiveHeld(bool redrawn) {
  Give(held_, redrawn);
  held_.clear();
  cut_held_ = false;
}

}  // namespace epochmeter::ingest::log
