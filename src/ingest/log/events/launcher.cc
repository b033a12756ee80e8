// SPDX-License-Identifier: Apache-2.0
// What launchers say of the ranks they started: torchrun, DeepSpeed, srun, mpirun. They see which
// process ended first, not why: torchrun's "Root Cause" may be a rank that only lost its peer.
#include <array>
#include <vector>

#include "base/strings.h"
#include "ingest/log/events/event_text.h"
#include "ingest/log/events/families.h"

namespace epochmeter::ingest::log {
namespace {

using std::string_view;

constexpr int kMostLines = 2000;  // 7 a rank

// "  exitcode  : -9 (pid: 4711)"
bool AddExitCode(string_view text, LogEvent* event) {
  const auto rest = After(text, "exitcode");
  if (!rest || rest->empty() || rest->front() != ':') return false;
  const auto code = IntAfter(*rest, ":");
  const auto pid = IntAfter(*rest, "(pid: ");
  if (!code || !pid) return false;
  AddNumber(event, "code", code);
  AddNumber(event, "pid", pid);
  if (*code < 0) AddNumber(event, "signal", std::optional(-*code));
  return true;
}

// torchrun's table of failed ranks.
class FailedRanksBlock : public EventBlock {
 public:
  explicit FailedRanksBlock(LogEvent event) : event_(std::move(event)) {}

  Take Next(const EventLine& line) override {
    if (++lines_ > kMostLines) return Take::kOver;
    const string_view text = base::Trim(line.text);
    if (base::StartsWith(text, "====")) {
      done_ = ++rules_ == 2;
    } else if (base::StartsWith(text, "Traceback")) {
      return Take::kOver;
    } else if (base::StartsWith(text, "Root Cause")) {
      in_root_ = true;
    } else if (base::StartsWith(text, "host ")) {
      host_ = base::Trim(text.substr(text.find(':') + 1));
    } else if (base::StartsWith(text, "rank ")) {
      rank_ = IntAfter(text, ":");
    } else if (base::StartsWith(text, "exitcode ")) {
      return ExitCode(line, text);
    }
    event_.last_line = line.place.line;
    return Take::kLooked;
  }
  bool Done() const override { return done_; }
  void End(EventContext& context) override {
    AddNumber(&event_, "failed_ranks", std::optional(static_cast<int64_t>(ended_.size())));
    AddNumber(&event_, "named_rank", named_);
    context.Emit(std::move(event_));
    for (LogEvent& event : ended_) context.Emit(std::move(event));
  }

 private:
  Take ExitCode(const EventLine& line, string_view text) {
    LogEvent event = MakeEvent("exitcode", line);
    if (!AddExitCode(text, &event)) return Take::kLooked;
    AddNumber(&event, "rank", rank_);
    AddText(&event, "host", CutText(host_, 100));
    if (in_root_) named_ = rank_;
    ended_.push_back(std::move(event));
    event_.last_line = line.place.line;
    return Take::kTaken;
  }

  LogEvent event_;
  std::vector<LogEvent> ended_;
  std::string host_;
  std::optional<int64_t> rank_, named_;
  bool in_root_ = false, done_ = false;
  int lines_ = 0, rules_ = 0;
};

bool ReadTorchrun(const EventLine& line, EventContext& context) {
  const string_view text = base::Trim(line.text);
  if (Contains(text, "ChildFailedError:") && !Contains(text, "raise ")) {
    context.Open(std::make_unique<FailedRanksBlock>(MakeEvent("child_failed", line)));
    return true;
  }
  LogEvent event = MakeEvent("exitcode", line);
  if (!base::StartsWith(text, "exitcode ") || !AddExitCode(text, &event)) return false;
  context.Emit(std::move(event));
  return true;
}

// DeepSpeed's launcher, mpirun, srun.
bool ReadExit(const EventLine& line, EventContext& context) {
  const string_view text = line.text;
  if (const auto code = IntAfter(text, "exits with return code = ")) {
    LogEvent event = MakeEvent("process_exit", line);
    AddNumber(&event, "code", code);
    if (*code < 0) AddNumber(&event, "signal", std::optional(-*code));
    context.Emit(std::move(event));
    return true;
  }
  if (const auto rank = IntAfter(text, "mpirun noticed that process rank ")) {
    LogEvent event = MakeEvent("process_exit", line);
    AddNumber(&event, "rank", rank);
    AddNumber(&event, "pid", IntAfter(text, "with PID "));
    AddNumber(&event, "signal", IntAfter(text, "exited on signal "));
    context.Emit(std::move(event));
    return true;
  }
  const auto code = IntAfter(text, "Exited with exit code ");
  if (!code || !Contains(text, "srun: error: ")) return false;
  LogEvent event = MakeEvent("exitcode", line);
  AddNumber(&event, "code", code);
  AddText(&event, "node", Between(text, "srun: error: ", ":", 100));
  context.Emit(std::move(event));
  return true;
}

// "Container rank 6 status failed cmd [...] code 1 log log/workerlog.6"; of old: "ABORT!!! Out of
// all 8 trainers, the trainer process with rank=[2, 3] was aborted."
bool ReadPaddle(const EventLine& line, EventContext& context) {
  const string_view text = line.text;
  LogEvent event = MakeEvent("exitcode", line);
  const size_t code = text.rfind("] code ");
  if (Contains(text, "Container rank ") && code != string_view::npos) {
    AddNumber(&event, "rank", IntAfter(text, "Container rank "));
    AddNumber(&event, "code", IntAfter(text.substr(code), "code "));
    AddText(&event, "log", WordAfter(text.substr(code), " log ", ","));
  } else if (Contains(text, "ABORT!!! Out of all ")) {
    AddText(&event, "ranks", Between(text, "with rank=[", "]", 200));
  } else {
    return false;
  }
  context.Emit(std::move(event));
  return true;
}

bool Read(const EventLine& line, EventContext& context) {
  return ReadTorchrun(line, context) || ReadExit(line, context) || ReadPaddle(line, context);
}

constexpr auto kAnchors = std::to_array<string_view>(
    {"ChildFailedError", "exitcodepid", "exitswithreturncode", "mpirunnoticedthatprocessrank",
     "Exitedwithexitcode", "Containerrank", "ABORTOutofall"});

}  // namespace

const EventFamily kLauncherFamily = {"launcher", kAnchors, Read};

}  // namespace epochmeter::ingest::log
