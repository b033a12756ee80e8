// SPDX-License-Identifier: Apache-2.0
// Python tracebacks with the type and message that end them, behind any prefix, and the headings of
// C++ ones. An exception that ends a training under way is an event of its own, unless its message
// is one of another kind (out of memory, Ray, ...) or a logger reported it and went on.
#include <algorithm>
#include <array>

#include "base/strings.h"
#include "ingest/log/events/event_text.h"
#include "ingest/log/events/families.h"

namespace epochmeter::ingest::log {
namespace {

using std::string_view;

constexpr string_view kHeading = "Traceback (most recent call last):";
constexpr size_t kHeadingWithin = 200;  // bytes from the line's begin
constexpr int kMostLines = 600;         // of one traceback
constexpr int kMostForeign = 8;         // lines of others inside it
constexpr int kMostBlank = 2;
constexpr int kMostTail = 200;  // lines behind the exception's own
constexpr size_t kMostMessage = 500;

// Ends that others have an event for, or that end a process in order.
constexpr auto kNoException = std::to_array<string_view>(
    {"KeyboardInterrupt", "SystemExit", "GeneratorExit", "ChildFailedError", "SignalException",
     "ProcessExitedException", "ProcessRaisedException", "StopIteration", "OutOfMemoryError",
     "ResourceExhaustedError"});

bool OthersHaveIt(string_view type) {
  return std::any_of(kNoException.begin(), kNoException.end(),
                     [type](string_view end) { return base::EndsWith(type, end); });
}

bool IsDashes(string_view text) {
  return text.size() >= 4 && text.find_first_not_of("-=") == string_view::npos;
}

// Of Paddle's account behind an exception: headings, rules and numbered C++ frames.
bool IsNativeStack(string_view text) {
  const string_view trimmed = base::Trim(text);
  if (trimmed.empty() || IsDashes(trimmed)) return true;
  if (base::StartsWith(trimmed, "C++ ") || base::StartsWith(trimmed, "Error Message Summary")) {
    return true;
  }
  const size_t digits = trimmed.find_first_not_of("0123456789");
  return digits != 0 && digits != string_view::npos && digits <= 4 && trimmed[digits] == ' ';
}

class TracebackBlock : public EventBlock {
 public:
  // `prefix` stands before the heading, maybe also before the lines that follow.
  TracebackBlock(LogEvent event, string_view prefix)
      : event_(std::move(event)), prefix_(prefix), logged_(!prefix.empty()) {
    if (base::EndsWith(prefix, "Original ")) {
      prefix_.clear();
      logged_ = false;
    }
  }

  Take Next(const EventLine& line) override {
    if (++lines_ > kMostLines) return Take::kOver;
    string_view text = line.text;
    if (!prefix_.empty() && base::StartsWith(text, prefix_)) {
      text.remove_prefix(prefix_.size());
      logged_ = false;
    }
    return type_.empty() ? Body(line, text) : Tail(line, text);
  }

  bool Done() const override { return done_; }
  void Claimed() override { claimed_ = true; }

  void End(EventContext& context) override {
    AddText(&event_, "type", type_);
    AddText(&event_, "message", CutText(message_, kMostMessage));
    AddText(&event_, "at", at_);
    AddText(&event_, "function", function_);
    if (frames_ > 0) AddNumber(&event_, "frames", std::optional<int64_t>(frames_));
    if (logged_) AddNumber(&event_, "logged", std::optional<int64_t>(1));
    const bool is_exception =
        !type_.empty() && !claimed_ && !logged_ && !detail_ && !OthersHaveIt(type_);
    if (!is_exception) return context.Emit(std::move(event_));
    LogEvent exception = event_;
    exception.kind = "exception";
    exception.place.line = exception_line_;
    exception.text = CutText(type_ + ": " + message_, kMostEventText);
    context.Emit(std::move(event_));
    context.EmitIfTrained(std::move(exception));
  }

 private:
  Take Body(const EventLine& line, string_view text) {
    if (Contains(text.substr(0, kHeadingWithin), kHeading)) return Take::kOver;
    if (base::Trim(text).empty()) return ++blank_ > kMostBlank ? Take::kOver : Take::kLooked;
    if (base::StartsWith(text, "  ") || text.front() == '\t') {
      ReadFrame(text);
      event_.last_line = line.place.line;
      return Take::kTaken;
    }
    const auto exception = ReadExceptionText(text);
    if (!exception) return ++foreign_ > kMostForeign ? Take::kOver : Take::kLooked;
    type_ = CutText(exception->type, 200);
    message_ = CutText(exception->message, kMostMessage);
    exception_line_ = line.place.line;
    event_.last_line = line.place.line;
    done_ = !message_.empty() && message_.back() != ':';
    if (message_.empty() && !Contains(text, ":")) done_ = true;
    return Take::kLooked;
  }

  // A message that begins below, or Paddle's account of C++ frames with the message at its end.
  Take Tail(const EventLine& line, string_view text) {
    if (++tail_ > kMostTail) return Take::kOver;
    const string_view trimmed = base::Trim(text);
    if (base::StartsWith(trimmed, "Error Message Summary")) {
      summary_ = true;
      return Take::kLooked;
    }
    if (summary_ && !trimmed.empty() && !IsDashes(trimmed)) return Summary(line, trimmed);
    if (IsNativeStack(text)) return Take::kLooked;
    if (text.front() != ' ' && text.front() != '\t') return Take::kOver;
    event_.last_line = line.place.line;
    if (const auto inner = ReadExceptionText(trimmed); inner && !inner->message.empty()) {
      message_ = CutText(trimmed, kMostMessage);
    } else if (message_.empty()) {
      message_ = CutText(trimmed, kMostMessage);
    }
    return Take::kLooked;
  }

  Take Summary(const EventLine& line, string_view trimmed) {
    event_.last_line = line.place.line;
    if (!message_.empty()) message_ += ' ';
    message_ = CutText(message_ + std::string(trimmed), kMostMessage);
    done_ = trimmed.back() != ':';
    return Take::kLooked;
  }

  void ReadFrame(string_view text) {
    const string_view file = Between(text, "File \"", "\"");
    if (file.empty()) return;
    ++frames_;
    const auto number = IntAfter(text, "\", line ");
    at_ = std::string(file) + ':' + std::to_string(number.value_or(0));
    const auto function = After(text, ", in ");
    function_ = function ? CutText(base::Trim(*function), 120) : "";
  }

  LogEvent event_;
  std::string prefix_;
  bool logged_ = false, detail_ = false, claimed_ = false, done_ = false, summary_ = false;
  int lines_ = 0, foreign_ = 0, blank_ = 0, tail_ = 0;
  int64_t frames_ = 0;
  std::string type_, message_, at_, function_;
  uint64_t exception_line_ = 0;
};

// A traceback inside one line, its line ends written as "\n".
bool ReadEscaped(string_view rest, LogEvent* event) {
  if (!base::StartsWith(rest, "\\n")) return false;
  std::optional<ExceptionText> last;
  for (size_t at = 0; at < rest.size();) {
    size_t end = rest.find("\\n", at);
    end = end == string_view::npos ? rest.size() : end;
    string_view line = rest.substr(at, end - at);
    line = line.substr(0, line.find_first_of("\"") == 0 ? 0 : line.size());
    if (const auto exception = ReadExceptionText(line)) last = exception;
    at = end + 2;
  }
  if (last) {
    AddText(event, "type", last->type);
    AddText(event, "message", CutText(last->message, kMostMessage));
  }
  return true;
}

bool IsChain(string_view text, EventContext& context) {
  if (Contains(text, "The above exception was the direct cause of the following exception")) {
    context.memory().chain = "cause";
  } else if (Contains(text, "During handling of the above exception, another exception occurred")) {
    context.memory().chain = "context";
  } else {
    return false;
  }
  return true;
}

bool IsQuoted(string_view text, size_t at) {
  const size_t behind = at + kHeading.size();
  return (at > 0 && (text[at - 1] == '"' || text[at - 1] == '\'')) ||
         (behind < text.size() && (text[behind] == '"' || text[behind] == '\''));
}

bool Read(const EventLine& line, EventContext& context) {
  if (IsChain(line.text, context)) return true;
  const size_t at = line.text.find(kHeading);
  if (at == string_view::npos || at + kHeading.size() > kHeadingWithin + kHeading.size()) {
    return false;
  }
  if (IsQuoted(line.text, at)) return false;
  string_view prefix = line.text.substr(0, at);
  if (base::EndsWith(prefix, "C++ ")) {
    context.Emit(MakeEvent("cpp_traceback", line));
    return true;
  }
  LogEvent event = MakeEvent("traceback", line);
  EventMemory& memory = context.memory();
  if (!memory.chain.empty()) {
    AddText(&event, "chained", memory.chain);
    AddNumber(&event, "chained_to_line",
              std::optional(static_cast<int64_t>(memory.traceback_line)));
  }
  memory.chain = {};
  memory.traceback_line = line.place.line;
  if (ReadEscaped(line.text.substr(at + kHeading.size()), &event)) {
    context.Emit(std::move(event));
  } else {
    context.Open(std::make_unique<TracebackBlock>(std::move(event), prefix));
  }
  return true;
}

constexpr auto kAnchors =
    std::to_array<string_view>({"Tracebackmostrecentcalllast", "Theaboveexceptionwasthedirectcause",
                                "Duringhandlingoftheaboveexception"});

}  // namespace

const EventFamily kTracebackFamily = {"traceback", kAnchors, Read};

}  // namespace epochmeter::ingest::log
