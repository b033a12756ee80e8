// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/line_prefix.h"

#include "base/strings.h"
#include "ingest/log/inner_stamp.h"
#include "ingest/log/prefix_words.h"
#include "ingest/log/stamp_text.h"

namespace epochmeter::ingest::log {
namespace {

constexpr size_t kMostBracketBytes = 96;
constexpr size_t kMostNameBytes = 80;
constexpr int kMostItems = 8;

// Reads one item after another; `in_` is where the next one begins.
class PrefixReader {
 public:
  explicit PrefixReader(std::string_view text) : text_(text) {}

  LinePrefix Read() {
    next_ = SkipSpaces(0);
    if (!ReadGlog() && !ReadMlperf()) ReadItems();
    if (!prefix_.stamp) ReadInner();
    if (prefix_.stamp) {
      prefix_.stamp_at = static_cast<size_t>(prefix_.stamp->text.data() - text_.data());
    }
    return prefix_;
  }

 private:
  char Peek(size_t at) const { return at < text_.size() ? text_[at] : '\0'; }
  bool named() const { return prefix_.stamp.has_value() || prefix_.level != LogLevel::kNone; }

  size_t SkipSpaces(size_t at) const {
    while (Peek(at) == ' ' || Peek(at) == '\t') ++at;
    return at;
  }

  // Ends an item at `end`: the separator behind it and one space belong to the prefix.
  bool Accept(size_t end) {
    size_t at = SkipSpaces(end);
    separator_ = '\0';
    const char c = Peek(at), next = Peek(at + 1);
    const bool spaced = next == ' ' || next == '\t' || next == '\0';
    // "| loss | 0.5 |" is a row of a table.
    const bool bar = c == '|' && base::Trim(text_).back() != '|';
    if (bar || c == ':' || (c == ',' && spaced) || (c == '-' && spaced) ||
        (c == '-' && at == end && IsLetter(next))) {
      separator_ = c;
      end = at + 1;
    } else if ((c == '>' && next == '>') || (c == '-' && next == '-')) {
      separator_ = c;
      end = at + 2;
    }
    next_ = SkipSpaces(end);
    prefix_.message = next_ == end || Peek(end) == '\t' ? end + (Peek(end) == '\t') : end + 1;
    return true;
  }

  void SetStamp(const RawStamp& stamp) {
    // Of two, the one that says more: "[Sun Feb 23 16:24:18 2025] [  12.345678]".
    if (prefix_.stamp && (prefix_.stamp->year || !stamp.year)) return;
    prefix_.stamp = stamp;
  }
  void SetLevel(LogLevel level) {
    if (prefix_.level == LogLevel::kNone) prefix_.level = level;
  }
  void SetLogger(std::string_view name) {
    if (prefix_.logger.empty()) prefix_.logger = name;
  }

  void ReadItems() {
    for (int items = 0; items < kMostItems && ReadItem(); ++items) {
    }
  }

  // A stamp farther in; where a level follows, a logger's line is glued behind something else.
  void ReadInner() {
    const InnerStamp inner = FindInnerStamp(text_);
    if (inner.size == 0) return;
    if (!inner.before_level) {
      prefix_.stamp = inner.stamp;
      return;
    }
    prefix_.glued = next_ = inner.begin;
    ReadItems();
  }

  // "I1209 10:38:20.123456  5123 file.cc:88] "
  bool ReadGlog() {
    RawStamp stamp;
    LogLevel level = LogLevel::kNone;
    const size_t end = ReadGlogStampAt(text_, 0, stamp, level);
    if (end == 0) return false;
    const size_t bracket = text_.substr(0, end + 200).find("] ", end);
    if (bracket == std::string_view::npos) {
      if (Peek(text_.size() - 1) != ']') return false;
      prefix_.message = text_.size();
    } else {
      prefix_.message = bracket + 2;
    }
    prefix_.stamp = stamp;
    prefix_.level = level;
    const std::string_view names = text_.substr(end, prefix_.message - end);
    const size_t space = names.find_last_of(' ', names.find(']'));
    if (space != std::string_view::npos) {
      prefix_.logger = names.substr(space + 1, names.find(']') - space - 1);
    }
    return true;
  }

  // ":::MLPv0.5.0 resnet 1541720418.766781330 (file:49) ", ":::MLLOG {...}"
  bool ReadMlperf() {
    if (text_.substr(0, 5) != ":::ML") return false;
    size_t at = text_.find(' ');
    if (at == std::string_view::npos) return false;
    if (text_[at + 1 < text_.size() ? at + 1 : at] == '{') {
      prefix_.message = at + 1;
      return true;
    }
    RawStamp stamp;
    const size_t name = text_.find(' ', at + 1);
    if (name == std::string_view::npos) return false;
    const size_t end = ReadStampAt(text_, name + 1, stamp);
    if (end == name + 1) return false;
    prefix_.stamp = stamp;
    prefix_.logger = text_.substr(at + 1, name - at - 1);
    next_ = SkipSpaces(end);
    const size_t close = Peek(next_) == '(' ? text_.find(')', next_) : std::string_view::npos;
    prefix_.message = SkipSpaces(close == std::string_view::npos ? next_ : close + 1);
    return true;
  }

  bool ReadItem() {
    const char c = Peek(next_);
    if (c == '[') return ReadBracket();
    if (c == '(') return ReadParenthesis();
    if (IsDigit(c)) return ReadStamp() || ReadName();
    if (!IsLetter(c) && c != '_') return false;
    return ReadLevel() || ReadStamp() || ReadName();
  }

  bool ReadStamp() {
    RawStamp stamp;
    const size_t end = ReadStampAt(text_, next_, stamp);
    if (end == next_ || IsNameByte(Peek(end))) return false;
    const bool bare = !stamp.year && !stamp.month && !stamp.first;  // a time of day, or seconds
    if (bare && MeasuresSomething(end)) return false;
    if (prefix_.stamp && bare) return false;
    SetStamp(stamp);
    return Accept(end);
  }

  // "00:05:57 elapsed", "00:04:10<10:01", "1500000000 parameters": no stamp but a message.
  bool MeasuresSomething(size_t end) const {
    const char c = Peek(end);
    if (c == '<' || c == '/' || c == '%' || c == '*' || c == ')') return true;
    const std::string_view behind = text_.substr(SkipSpaces(end), 9);
    for (const std::string_view word : {"elapsed", "remain", "left", "eta", "ETA", "param", "token",
                                        "sample", "byte", "element", "flop", "total", "<", "/"}) {
      if (base::StartsWith(behind, word)) return true;
    }
    return false;
  }

  bool ReadLevel() {
    size_t end = next_;
    while (IsLetter(Peek(end))) ++end;
    const std::string_view word = text_.substr(next_, end - next_);
    const LogLevel level = LevelOfWord(word);
    if (level == LogLevel::kNone) return ReadLetterLevel(word, end);
    const bool upper = word[0] < 'a' && word[1] < 'a';
    const char c = Peek(end);
    const bool ends = c == ' ' || c == '\t' || c == ':' || c == '|' || c == ']' || c == '\0' ||
                      c == ',' || c == '-';
    // "Info: ..." and "error: ..." are messages unless something in front says what they are.
    if (!ends || prefix_.level != LogLevel::kNone) return false;
    if (upper ? !named() && c == '-' : !prefix_.stamp) return false;
    if (upper && !named() && c == ' ' && !LevelBeginsPrefix(end)) return false;
    if (!upper && c != ':' && c != '|' && separator_ == '\0') return false;
    SetLevel(level);
    return Accept(end);
  }

  // "INFO 2026-06-12 10:53:24", "INFO 01-20 10:11:12", "INFO [trainer.py:12]", "INFO - ",
  // "INFO     | ": a level word that is not the first word of a sentence ("ERROR loading x").
  bool LevelBeginsPrefix(size_t end) const {
    const size_t at = SkipSpaces(end);
    const char c = Peek(at);
    if (c == '[' || c == '|' || c == ':' || (c == '-' && Peek(at + 1) == ' ')) return true;
    RawStamp stamp;
    return ReadStampAt(text_, at, stamp) != at;
  }

  // "2025-08-17 00:40:44.027607: I tensorflow/core/util/port.cc:113] "
  bool ReadLetterLevel(std::string_view word, size_t end) {
    if (word.size() != 1 || !prefix_.stamp || Peek(end) != ' ') return false;
    const LogLevel level = LevelOfLetter(word[0]);
    if (level == LogLevel::kNone || prefix_.level != LogLevel::kNone) return false;
    size_t name = end + 1;
    while (IsNameByte(Peek(name)) || Peek(name) == ':') ++name;
    if (Peek(name) != ']') return false;
    SetLevel(level);
    SetLogger(text_.substr(end + 1, name - end - 1));
    return Accept(name + 1);
  }

  // A logger's name or the place in its code; only where what stands around says so.
  bool ReadName() {
    if (!named()) return ReadNameInFront();
    size_t end = next_;
    while (IsNameByte(Peek(end)) || Peek(end) == ':' || Peek(end) == '-' || Peek(end) == '<' ||
           Peek(end) == '>') {
      ++end;
    }
    if (Peek(end) == '[' && Peek(end - 1) != ':') {  // "train_net.py[line:177]"
      const size_t close = text_.substr(0, end + 24).find(']', end);
      if (close != std::string_view::npos) end = close + 1;
    }
    if (end - next_ > kMostNameBytes) return false;
    if (separator_ == ':' && Peek(next_ - 1) == ':') {  // "INFO:__main__:epochs: 2"
      size_t colon = text_.find(':', next_);
      while (colon < end && IsDigit(Peek(colon + 1))) colon = text_.find(':', colon + 1);
      end = colon < end ? colon + 1 : end;
    }
    const size_t glued = end;
    while (end > next_ && Peek(end - 1) == ':') --end;
    const std::string_view name = text_.substr(next_, end - next_);
    if (name.empty() || IsPhase(name)) return false;
    if (!IsPlaceInCode(name) && !NameEnds(end) && !LevelFollows(glued)) return false;
    SetLogger(name);
    return Accept(Peek(end) == ']' ? end + 1 : end);
  }

  // "INFO:__main__:", "- mmdet - INFO -", "| mod:func:12 - ": marks on both sides.
  bool NameEnds(size_t end) const {
    if (prefix_.level == LogLevel::kNone || !prefix_.logger.empty()) return false;
    const std::string_view name = text_.substr(next_, end - next_);
    if (!IsName(name.substr(0, name.find(':')))) return false;
    if (separator_ == ':' && Peek(next_ - 1) == ':') return Peek(end) == ':';
    if (separator_ != '-' && separator_ != '|') return false;
    const size_t at = SkipSpaces(end);
    return Peek(at) == '|' || (Peek(at) == '-' && at != end && Peek(at + 1) == ' ');
  }

  // Behind a name of the line stands a level: "ppdet.engine INFO: ", "root - INFO - ",
  // "torch.distributed.run: [WARNING] ".
  bool LevelFollows(size_t end) const {
    if (prefix_.level != LogLevel::kNone) return false;
    size_t at = SkipSpaces(end);
    if (Peek(at) == '-' || Peek(at) == '|' || Peek(at) == ':') at = SkipSpaces(at + 1);
    if (Peek(at) == '[') at = SkipSpaces(at + 1);
    size_t last = at;
    while (IsLetter(Peek(last))) ++last;
    const char c = Peek(last);
    if (c != ' ' && c != ':' && c != ']' && c != '|' && c != '\t' && c != '-') return false;
    return LevelOfWord(text_.substr(at, last - at)) != LogLevel::kNone;
  }

  // "kern  :warn  : 2025-01-21T04:41:44,283302+00:00 " of dmesg.
  bool ReadNameInFront() {
    const size_t colon = text_.substr(0, 24).find(':');
    if (next_ != 0 || colon == std::string_view::npos || Peek(colon - 1) != ' ') return false;
    size_t end = colon + 1;
    while (IsLetter(Peek(end))) ++end;
    const LogLevel level = LevelOfWord(text_.substr(colon + 1, end - colon - 1));
    end = SkipSpaces(end);
    if (level == LogLevel::kNone || Peek(end) != ':') return false;
    SetLevel(level);
    SetLogger(base::Trim(text_.substr(0, colon)));
    return Accept(end);
  }

  // "(main.py 284): INFO " of Swin.
  bool ReadParenthesis() {
    if (!named()) return false;
    const size_t close = text_.substr(0, next_ + kMostBracketBytes).find(')', next_);
    if (close == std::string_view::npos) return false;
    const std::string_view inside = text_.substr(next_ + 1, close - next_ - 1);
    if (!IsPlaceInCode(inside) && !IsNameAndLine(inside)) return false;
    SetLogger(inside);
    return Accept(close + 1);
  }

  bool ReadBracket() {
    const std::string_view near = text_.substr(0, next_ + kMostBracketBytes);
    const size_t close = near.find(']', next_);
    if (close == std::string_view::npos) return false;
    const std::string_view inside = base::Trim(near.substr(next_ + 1, close - next_ - 1));
    if (inside.empty()) return false;
    return ReadInside(inside, close) && Accept(close + 1);
  }

  bool ReadInside(std::string_view inside, size_t close) {
    const LogLevel level = LevelOfBracket(inside);
    if (level != LogLevel::kNone) {
      if (prefix_.level != LogLevel::kNone) return false;
      SetLevel(level);
      return true;
    }
    const size_t bar = inside.find('|');
    if (bar != std::string_view::npos && LevelOfWord(inside.substr(0, bar)) != LogLevel::kNone) {
      SetLevel(LevelOfWord(inside.substr(0, bar)));  // "[INFO|trainer.py:912]"
      SetLogger(inside.substr(bar + 1));
      return true;
    }
    if (ReadStampInside(inside, close)) return true;
    if (IsBootTime(inside)) return true;
    if (IsPlaceInCode(inside) && named()) {
      SetLogger(inside);
      return true;
    }
    const bool name = IsName(inside) || IsHostAndRank(inside);
    if (!name || IsPhase(inside) || !PrefixFollows(close + 1)) return false;
    SetLogger(inside);
    return true;
  }

  // "[14:04:13.402724]", "[08/30 23:00:36 d2.utils.events]", "[NeMo I 2026-01-01 10:11:12 x:4]"
  bool ReadStampInside(std::string_view inside, size_t close) {
    size_t at = 0;
    RawStamp stamp;
    for (int words = 0; words < 3; ++words) {
      const size_t end = ReadStampAt(inside, at, stamp);
      if (end != at && (end == inside.size() || inside[end] == ' ' || inside[end] == ',')) {
        TakeWords(inside.substr(0, at));
        TakeWords(inside.substr(end));
        if (end == inside.size() && at == 0 && !stamp.year && !stamp.unix_ns) {
          stamp.text = text_.substr(next_, close + 1 - next_);
          ++stamp.clock_at;
        }
        SetStamp(stamp);
        return true;
      }
      const size_t space = inside.find(' ', at);
      if (space == std::string_view::npos || !IsLetter(inside[at])) return false;
      at = inside.find_first_not_of(' ', space);
      if (at == std::string_view::npos) return false;
    }
    return false;
  }

  // The words beside a stamp in its bracket: levels and names.
  void TakeWords(std::string_view words) {
    while (!words.empty()) {
      const size_t begin = words.find_first_not_of(" ,:|-");
      if (begin == std::string_view::npos) return;
      words.remove_prefix(begin);
      const std::string_view word = words.substr(0, words.find(' '));
      words.remove_prefix(word.size());
      const LogLevel level = LevelOfBracket(word);
      if (level != LogLevel::kNone) {
        SetLevel(level);
      } else if (IsLetter(word[0])) {
        SetLogger(word);
      }
    }
  }

  // "(trainer:464)"
  static bool IsNameAndLine(std::string_view inside) {
    return inside.find('/') == std::string_view::npos && IsHostAndRank(inside);
  }

  // "[gpu01:0/2]" of ESPnet.
  static bool IsHostAndRank(std::string_view inside) {
    const size_t colon = inside.find(':');
    return colon != std::string_view::npos && IsName(inside.substr(0, colon)) &&
           inside.find_first_not_of("0123456789/", colon + 1) == std::string_view::npos;
  }

  // "[12345.678901]": seconds since the machine was started.
  static bool IsBootTime(std::string_view inside) {
    if (inside.size() < 8 || inside[inside.size() - 7] != '.') return false;
    return inside.find_first_not_of("0123456789.") == std::string_view::npos;
  }

  // Behind a bracketed word stands a level in brackets or a stamp: the word is a name.
  bool PrefixFollows(size_t end) const {
    size_t at = SkipSpaces(end);
    if (Peek(at) == '[') {
      const size_t close = text_.substr(0, at + 16).find(']', at);
      if (close == std::string_view::npos) return false;
      return LevelOfBracket(base::Trim(text_.substr(at + 1, close - at - 1))) != LogLevel::kNone;
    }
    RawStamp stamp;
    const size_t last = ReadStampAt(text_, at, stamp);
    return last != at && (stamp.year || stamp.month || stamp.first);
  }

  std::string_view text_;
  LinePrefix prefix_;
  size_t next_ = 0;
  char separator_ = '\0';  // behind the last item
};

}  // namespace

LinePrefix ReadLinePrefix(std::string_view text) {
  LinePrefix prefix = PrefixReader(text).Read();
  if (prefix.message == 0 || prefix.message >= text.size()) return prefix;
  // A logger's line in another logger's: "2024-05-05 10:00:00 - root - INFO - INFO:tensorflow:..."
  const LinePrefix inner = PrefixReader(text.substr(prefix.message)).Read();
  if (inner.message == 0) return prefix;
  prefix.message += inner.message;
  const bool fuller = inner.stamp && (inner.stamp->year || !prefix.stamp || !prefix.stamp->year);
  if (fuller) prefix.stamp = inner.stamp;
  if (inner.level != LogLevel::kNone) prefix.level = inner.level;
  if (!inner.logger.empty()) prefix.logger = inner.logger;
  return prefix;
}

std::optional<RawStamp> ReadStampLike(std::string_view text, size_t stamp_at) {
  RawStamp stamp;
  const bool bracket = stamp_at < text.size() && text[stamp_at] == '[';
  const size_t begin = stamp_at + (bracket ? 1 : 0);
  size_t end = ReadStampAt(text, begin, stamp);
  if (end == begin) {
    LogLevel level = LogLevel::kNone;
    end = ReadGlogStampAt(text, begin, stamp, level);
  }
  if (end <= begin) return std::nullopt;
  if (bracket) {
    if (end >= text.size() || text[end] != ']') return std::nullopt;
    stamp.text = text.substr(stamp_at, end + 1 - stamp_at);
    ++stamp.clock_at;
  }
  return stamp;
}

}  // namespace epochmeter::ingest::log
