// SPDX-License-Identifier: Apache-2.0
// Signals as Paddle, Python's faulthandler and Open MPI report them.
#include <array>

#include "base/strings.h"
#include "ingest/log/events/event_text.h"
#include "ingest/log/events/families.h"

namespace epochmeter::ingest::log {
namespace {

using std::string_view;

constexpr int kMostLines = 4;

// Paddle's lines below name the signal, the process and who sent it.
class PaddleSignalBlock : public OneEventBlock {
 public:
  using OneEventBlock::OneEventBlock;
  Take Next(const EventLine& line) override {
    if (++lines_ > kMostLines) return Take::kOver;
    const auto info = After(line.text, "[SignalInfo: *** ");
    if (!info) return Take::kLooked;
    AddText(&event_, "signal", info->substr(0, info->find(' ')));
    AddNumber(&event_, "pid", IntAfter(*info, "received by PID "));
    AddNumber(&event_, "from_pid", IntAfter(*info, "from PID "));
    event_.last_line = line.place.line;
    done_ = true;
    return Take::kTaken;
  }
};

bool ReadPaddle(const EventLine& line, EventContext& context) {
  if (Contains(line.text, "FatalError: `") &&
      Contains(line.text, "` is detected by the operating")) {
    LogEvent event = MakeEvent("fatal_signal_paddle", line);
    AddText(&event, "signal_name", Between(line.text, "FatalError: `", "`", 64));
    context.Open(std::make_unique<PaddleSignalBlock>(std::move(event)));
    return true;
  }
  if (!Contains(line.text, "*** Aborted at ") || !Contains(line.text, "(unix time)")) return false;
  LogEvent event = MakeEvent("unix_abort_time", line);
  AddNumber(&event, "unix_time", IntAfter(line.text, "*** Aborted at "));
  context.Emit(std::move(event));
  return true;
}

// glog's handler: "*** SIGSEGV (@0x0) received by PID 6778 (TID 0x7f) from PID 0; stack trace: ***"
bool ReadGlog(const EventLine& line, EventContext& context) {
  const string_view text = line.text;
  const size_t at = text.find("*** SIG");
  if (at == string_view::npos || !Contains(text, " received by PID ")) return false;
  LogEvent event = MakeEvent("fatal_signal", line);
  const string_view name = text.substr(at + 4);
  AddText(&event, "signal_name", name.substr(0, name.find_first_of(" (")));
  AddNumber(&event, "pid", IntAfter(text, " received by PID "));
  context.Emit(std::move(event));
  return true;
}

bool ReadOthers(const EventLine& line, EventContext& context) {
  const string_view text = MessageOf(line.text);
  const bool python = base::StartsWith(text, "Fatal Python error: ");
  if (!python && !Contains(text, "] Signal: ")) return false;
  LogEvent event = MakeEvent("fatal_signal", line);
  if (python) {
    AddText(&event, "signal_name", CutText(*After(text, "Fatal Python error: "), 100));
  } else {
    const string_view rest = *After(text, "] Signal: ");  // "Segmentation fault (11)"
    AddText(&event, "signal_name", base::Trim(rest.substr(0, rest.find('('))));
    AddNumber(&event, "signal", IntAfter(rest, "("));
    if (!IntAfter(rest, "(")) return false;
  }
  context.Emit(std::move(event));
  return true;
}

bool Read(const EventLine& line, EventContext& context) {
  return ReadPaddle(line, context) || ReadGlog(line, context) || ReadOthers(line, context);
}

constexpr auto kAnchors = std::to_array<string_view>(
    {"isdetectedbytheoperating", "Abortedat", "FatalPythonerror", "SignalSegmentation", "SignalBus",
     "SignalAborted", "SignalFloating", "receivedbyPID"});

}  // namespace

const EventFamily kSignalFamily = {"signal", kAnchors, Read};

}  // namespace epochmeter::ingest::log
