// SPDX-License-Identifier: Apache-2.0
// Processes that load data: their exceptions as the loader passes them on, and their deaths.
#include <array>

#include "base/strings.h"
#include "ingest/log/events/event_text.h"
#include "ingest/log/events/families.h"

namespace epochmeter::ingest::log {
namespace {

using std::string_view;

// PyTorch: "RuntimeError: DataLoader worker (pid(s) 71, 72) exited unexpectedly", "DataLoader
// worker (pid 71) is killed by signal: Killed."
bool ReadDeath(const EventLine& line, EventContext& context) {
  if (Contains(line.text, "Unexpected bus error encountered in worker")) {
    LogEvent event = MakeEvent("dataloader_worker", line);
    AddText(&event, "reason", "Bus error");
    context.Emit(std::move(event));
    return true;
  }
  const auto rest = After(line.text, "DataLoader worker (pid");
  if (!rest) return false;
  const bool killed = Contains(*rest, "is killed by signal: ");
  if (!killed && !Contains(*rest, "exited unexpectedly")) return false;
  LogEvent event = MakeEvent("dataloader_worker", line);
  const string_view pids = base::Trim(rest->substr(rest->find(' ') + 1));
  AddNumber(&event, "pid", IntAtBegin(pids));
  AddText(&event, "reason",
          killed ? WordAfter(*rest, "is killed by signal: ", ".") : "exited unexpectedly");
  context.Emit(std::move(event));
  return true;
}

// PyTorch: "Caught KeyError in DataLoader worker process 0."; Paddle: "DataLoader worker(1) caught
// KeyError with message:", with a traceback that may be written in the same line.
bool ReadException(const EventLine& line, EventContext& context) {
  const string_view text = line.text;
  const auto torch_worker = IntAfter(text, "in DataLoader worker process ");
  const auto paddle_worker = IntAfter(text, "DataLoader worker(");
  string_view type;
  if (torch_worker) type = WordAfter(text, "Caught ", " ");
  if (paddle_worker) type = WordAfter(text, ") caught ", " ");
  if (type.empty()) return false;
  LogEvent event = MakeEvent("dataloader_worker", line);
  AddNumber(&event, "worker", torch_worker ? torch_worker : paddle_worker);
  AddText(&event, "type", type);
  context.Emit(std::move(event));
  return true;
}

bool Read(const EventLine& line, EventContext& context) {
  return ReadDeath(line, context) || ReadException(line, context);
}

constexpr auto kAnchors = std::to_array<string_view>({"DataLoaderworker", "Unexpectedbuserror"});

}  // namespace

const EventFamily kWorkersFamily = {"workers", kAnchors, Read};

}  // namespace epochmeter::ingest::log
