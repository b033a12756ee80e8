// SPDX-License-Identifier: Apache-2.0
// NCCL: its warnings, errors that a framework raises, and collectives that the watchdog gave up,
// with the rank that did not come where PyTorch names it. INFO lines are no errors, also those that
// trace an error through NCCL's sources.
#include <algorithm>
#include <array>

#include "base/strings.h"
#include "ingest/log/events/event_text.h"
#include "ingest/log/events/families.h"

namespace epochmeter::ingest::log {
namespace {

using std::string_view;

constexpr int kMostLines = 8;

std::optional<double> Seconds(std::optional<int64_t> milliseconds) {
  if (!milliseconds) return {};
  return static_cast<double>(*milliseconds) / 1000;
}

//  - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:
//      [1] finished collective #2, but didn't join collective #3 (count from 1)
class TimeoutBlock : public OneEventBlock {
 public:
  using OneEventBlock::OneEventBlock;
  Take Next(const EventLine& line) override {
    if (++lines_ > kMostLines || Contains(line.text, "Watchdog caught")) return Take::kOver;
    const string_view text = base::Trim(line.text);
    if (Contains(text, "ranks that caused the desync")) {
      named_ = true;
      event_.last_line = line.place.line;
      return Take::kLooked;
    }
    if (!named_ || text.empty() || text.front() != '[') return named_ ? Take::kOver : Take::kLooked;
    event_.last_line = line.place.line;
    AddNumber(&event_, "culprit_rank", IntAtBegin(text.substr(1)));
    AddNumber(&event_, "culprit_finished", IntAfter(text, "finished collective #"));
    AddNumber(&event_, "culprit_missed", IntAfter(text, "join collective #"));
    done_ = true;
    return Take::kTaken;
  }

 private:
  bool named_ = false;
};

bool ReadTimeout(const EventLine& line, EventContext& context) {
  const string_view text = line.text;
  if (!Contains(text, "Watchdog caught collective operation timeout")) return false;
  LogEvent event = MakeEvent("nccl_timeout", line);
  AddNumber(&event, "rank", IntAfter(text, "[Rank "));
  AddNumber(&event, "seq", IntAfter(text, "SeqNum="));
  AddText(&event, "op", WordAfter(text, "OpType=", ",)"));
  AddNumber(&event, "numel", IntAfter(text, "NumelIn="));
  AddNumber(&event, "timeout_s", Seconds(IntAfter(text, "Timeout(ms)=")));
  AddNumber(&event, "ran_s", Seconds(IntAfter(text, "ran for ")));
  context.Open(std::make_unique<TimeoutBlock>(std::move(event)));
  return true;
}

// "host:803564:803604 [1] NCCL INFO ...": a process writes it, it does not speak of it.
bool ReadWarning(const EventLine& line, EventContext& context) {
  const size_t at = line.text.find(" NCCL WARN ");
  if (at == string_view::npos) return false;
  if (line.text.substr(0, at).find(':') == string_view::npos) return false;
  LogEvent event = MakeEvent("nccl_warn", line);
  const string_view before = line.text.substr(0, at);
  const size_t bracket = before.rfind('[');
  if (bracket != string_view::npos)
    AddNumber(&event, "device", IntAtBegin(before.substr(bracket + 1)));
  AddText(&event, "message", CutText(base::Trim(line.text.substr(at + 11)), 300));
  context.Emit(std::move(event));
  return true;
}

bool ReadError(const EventLine& line, EventContext& context) {
  const string_view text = line.text;
  if (Contains(text, "NCCL INFO")) return false;
  constexpr auto kMarks = std::to_array<string_view>(
      {"Error: NCCL error in:", "NCCL error(", "Error: NCCL Error ",
       "Error: NCCL communicator was aborted", "Error: NCCL communicator encountered error"});
  const bool found = std::any_of(kMarks.begin(), kMarks.end(),
                                 [text](string_view mark) { return Contains(text, mark); });
  if (!found) return false;
  LogEvent event = MakeEvent("nccl_error", line);
  AddNumber(&event, "code", IntAfter(text, "NCCL error("));
  AddNumber(&event, "rank", IntAfter(text, "aborted on rank "));
  constexpr auto kReasons = std::to_array<string_view>(
      {"unhandled cuda error", "unhandled system error", "internal error", "invalid argument",
       "invalid usage", "remote process exited or there was a network error", "was aborted"});
  for (const string_view reason : kReasons) {
    if (!Contains(text, reason)) continue;
    AddText(&event, "reason", reason);
    break;
  }
  context.Emit(std::move(event));
  return true;
}

bool Read(const EventLine& line, EventContext& context) {
  return ReadTimeout(line, context) || ReadWarning(line, context) || ReadError(line, context);
}

constexpr auto kAnchors = std::to_array<string_view>(
    {"Watchdogcaughtcollective", "NCCLWARN", "NCCLerror", "NCCLError", "NCCLcommunicator"});

}  // namespace

const EventFamily kNcclFamily = {"nccl", kAnchors, Read};

}  // namespace epochmeter::ingest::log
