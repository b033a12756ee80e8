// SPDX-License-Identifier: Apache-2.0
// What a shell says of a process that a signal ended: "Killed", alone or with line, pid and
// command. It does not prove that memory ran out: anyone may send signal 9.
#include <algorithm>
#include <array>

#include "base/strings.h"
#include "ingest/log/events/event_text.h"
#include "ingest/log/events/families.h"

namespace epochmeter::ingest::log {
namespace {

using std::string_view;

struct ShellWord {
  string_view word;
  string_view kind;
  int64_t signal;
};
constexpr auto kWords =
    std::to_array<ShellWord>({{"Killed", "killed", 9},
                              {"Segmentation fault (core dumped)", "fatal_signal", 11},
                              {"Segmentation fault", "fatal_signal", 11},
                              {"Bus error (core dumped)", "fatal_signal", 7},
                              {"Bus error", "fatal_signal", 7},
                              {"Aborted (core dumped)", "fatal_signal", 6},
                              {"Floating point exception (core dumped)", "fatal_signal", 8}});

LogEvent ShellEvent(const ShellWord& word, const EventLine& line) {
  LogEvent event = MakeEvent(word.kind, line);
  event.text = CutText(base::Trim(line.text), kMostEventText);
  AddNumber(&event, "signal", std::optional(word.signal));
  return event;
}

// "/path/script: line 23: 427394 Killed                  python train.py"
bool ReadScript(const EventLine& line, EventContext& context) {
  const auto at = After(line.text, ": line ");
  if (!at) return false;
  const auto number = IntAtBegin(*at);
  const auto rest = After(*at, ": ");
  if (!number || !rest) return false;
  const auto pid = IntAtBegin(*rest);
  if (!pid) return false;
  const string_view behind = base::Trim(rest->substr(rest->find_first_not_of("0123456789")));
  for (const ShellWord& word : kWords) {
    if (!base::StartsWith(behind, word.word)) continue;
    LogEvent event = ShellEvent(word, line);
    AddNumber(&event, "line", number);
    AddNumber(&event, "pid", pid);
    AddText(&event, "command", CutText(base::Trim(behind.substr(word.word.size())), 300));
    context.Emit(std::move(event));
    return true;
  }
  return false;
}

// "srun: error: n01: task 0: Segmentation fault". Its "Killed" only repeats what Slurm did.
bool ReadSrun(const EventLine& line, EventContext& context) {
  const auto rest = After(line.text, "srun: error: ");
  if (!rest) return false;
  for (const ShellWord& word : kWords) {
    if (word.signal == 9 || !Contains(*rest, word.word)) continue;
    LogEvent event = ShellEvent(word, line);
    AddText(&event, "node", rest->substr(0, rest->find(':')));
    AddNumber(&event, "task", IntAfter(*rest, ": task "));
    context.Emit(std::move(event));
    return true;
  }
  return false;
}

// "[1]+  Killed                  python train.py", "[1]    4711 killed     python train.py"
bool ReadJob(const EventLine& line, EventContext& context) {
  string_view text = line.text;
  if (text.size() < 4 || text[0] != '[' || !IntAtBegin(text.substr(1))) return false;
  const size_t close = text.find(']');
  if (close == string_view::npos || close > 6) return false;
  text = text.substr(close + 1);
  text.remove_prefix(std::min(text.find_first_not_of("+- "), text.size()));
  const auto pid = IntAtBegin(text);
  if (pid) text = base::Trim(text.substr(text.find_first_not_of("0123456789")));
  if (!base::StartsWith(text, "Killed  ") && !(pid && base::StartsWith(text, "killed  "))) {
    return false;
  }
  LogEvent event = ShellEvent(kWords[0], line);
  AddNumber(&event, "pid", pid);
  AddText(&event, "command", CutText(base::Trim(text.substr(6)), 300));
  context.Emit(std::move(event));
  return true;
}

bool Read(const EventLine& line, EventContext& context) {
  const string_view text = base::Trim(line.text);
  for (const ShellWord& word : kWords) {
    if (text != word.word) continue;
    context.Emit(ShellEvent(word, line));
    return true;
  }
  return ReadScript(line, context) || ReadJob(line, context) || ReadSrun(line, context);
}

constexpr auto kAnchors =
    std::to_array<string_view>({"Killed", "killed", "Segmentationfault", "Buserror",
                                "Abortedcoredumped", "Floatingpointexception"});

}  // namespace

const EventFamily kKilledFamily = {"killed", kAnchors, Read};

}  // namespace epochmeter::ingest::log
