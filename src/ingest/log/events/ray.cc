// SPDX-License-Identifier: Apache-2.0
// Ray: tasks that failed and workers that died.
#include <algorithm>
#include <array>

#include "base/strings.h"
#include "ingest/log/events/event_text.h"
#include "ingest/log/events/families.h"

namespace epochmeter::ingest::log {
namespace {

using std::string_view;

struct RayWords {
  string_view words;
  string_view what;
};
constexpr auto kWords =
    std::to_array<RayWords>({{"A worker died or was killed while executing a task", "worker died"},
                             {"worker died unexpectedly", "worker died"},
                             {"The worker died unexpectedly", "worker died"},
                             {"ray.exceptions.WorkerCrashedError: ", "worker died"},
                             {"ray.exceptions.ActorDiedError: ", "actor died"},
                             {"ray.exceptions.RayActorError: ", "actor died"},
                             {"ray.exceptions.NodeDiedError: ", "node died"},
                             {"ray.exceptions.OutOfMemoryError: ", "out of memory"}});

bool Read(const EventLine& line, EventContext& context) {
  const string_view text = line.text;
  const size_t task = text.find("RayTaskError(");
  string_view what;
  if (task != string_view::npos) {
    const size_t close = text.find(')', task);
    if (close != string_view::npos && text.substr(close + 1, 1) == ":") what = "RayTaskError";
  }
  if (what.empty()) {
    const auto found = std::find_if(kWords.begin(), kWords.end(),
                                    [text](const RayWords& w) { return Contains(text, w.words); });
    if (found == kWords.end()) return false;
    what = found->what;
  }
  LogEvent event = MakeEvent("ray_worker_died", line);
  AddText(&event, "what", what);
  if (task != string_view::npos) AddText(&event, "type", Between(text, "RayTaskError(", ")", 100));
  AddNumber(&event, "pid", IntAfter(text, "pid="));
  AddText(&event, "node", WordAfter(text, "ip=", ",)"));
  context.Emit(std::move(event));
  return true;
}

constexpr auto kAnchors =
    std::to_array<string_view>({"RayTaskError", "workerdied", "rayexceptions"});

}  // namespace

const EventFamily kRayFamily = {"ray", kAnchors, Read};

}  // namespace epochmeter::ingest::log
