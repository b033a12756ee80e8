// SPDX-License-Identifier: Apache-2.0
// Processes killed because the host, their cgroup or their Slurm step ran out of memory. The kernel
// writes several lines of one kill: "oom-kill:" is the event, what follows are its figures.
#include <array>

#include "base/strings.h"
#include "ingest/log/events/event_text.h"
#include "ingest/log/events/families.h"

namespace epochmeter::ingest::log {
namespace {

using std::string_view;

constexpr int kMostLines = 6;
// "Killed process" so soon after "oom-kill:" tells of the same kill.
constexpr uint64_t kSameKillLines = 64;

// "anon-rss:7340032kB"
std::optional<int64_t> KilobytesAfter(string_view text, string_view mark) {
  const auto kilobytes = IntAfter(text, mark);
  if (!kilobytes || *kilobytes < 0 || *kilobytes > (int64_t{1} << 50)) return {};
  return *kilobytes * 1024;
}

bool IsKilledProcess(string_view text) { return Contains(text, "Killed process "); }

void AddKilled(string_view text, LogEvent* event) {
  AddNumber(event, "pid", IntAfter(text, "Killed process "));
  AddText(event, "process", Between(text, "(", ")", 64));
  AddNumber(event, "virtual_bytes", KilobytesAfter(text, "total-vm:"));
  AddNumber(event, "anonymous_bytes", KilobytesAfter(text, "anon-rss:"));
}

class KernelKillBlock : public OneEventBlock {
 public:
  using OneEventBlock::OneEventBlock;
  Take Next(const EventLine& line) override {
    if (++lines_ > kMostLines || Contains(line.text, "oom-kill:")) return Take::kOver;
    if (!IsKilledProcess(line.text)) return Take::kLooked;
    AddKilled(line.text, &event_);
    event_.last_line = line.place.line;
    done_ = true;
    return Take::kTaken;
  }
};

bool ReadKernel(const EventLine& line, EventContext& context) {
  const string_view text = line.text;
  EventMemory& memory = context.memory();
  if (Contains(text, "oom-kill:constraint=")) {
    LogEvent event = MakeEvent("oom_kill_host", line);
    AddText(&event, "constraint", WordAfter(text, "constraint=", ","));
    AddText(&event, "cgroup", WordAfter(text, "task_memcg=", ","));
    AddText(&event, "task", WordAfter(text, ",task=", ","));
    AddNumber(&event, "task_pid", IntAfter(text, ",pid="));
    memory.kernel_kill_line = line.place.line;
    context.Open(std::make_unique<KernelKillBlock>(std::move(event)));
    return true;
  }
  if (!IsKilledProcess(text)) return false;
  if (!Contains(text, "ut of memory: Killed process ")) return false;
  const bool told =
      memory.kernel_kill_line != 0 && line.place.line - memory.kernel_kill_line <= kSameKillLines;
  if (told) return true;
  LogEvent event = MakeEvent("oom_kill_host", line);
  if (Contains(text, "cgroup out of memory")) AddText(&event, "constraint", "CONSTRAINT_MEMCG");
  AddKilled(text, &event);
  context.Emit(std::move(event));
  return true;
}

// Slurm of old: "Job 71 exceeded memory limit (9000 > 8000), being killed", then "Exceeded job
// memory limit".
bool ReadOldSlurm(const EventLine& line, EventContext& context) {
  const string_view text = line.text;
  EventMemory& memory = context.memory();
  const auto used = IntAfter(text, " exceeded memory limit (");
  const bool told =
      memory.slurm_kill_line != 0 && line.place.line - memory.slurm_kill_line <= kSameKillLines;
  if (!used && !(Contains(text, "error: Exceeded ") && Contains(text, " memory limit")))
    return false;
  if (!used && told) return true;
  memory.slurm_kill_line = line.place.line;
  LogEvent event = MakeEvent("oom_kill_host", line);
  if (used) {
    AddText(&event, "step", WordAfter(text, "error: Job ", ","));
    AddNumber(&event, "used_bytes", KilobytesAfter(text, " exceeded memory limit ("));
    AddNumber(&event, "limit_bytes", KilobytesAfter(text, " > "));
  }
  context.Emit(std::move(event));
  return true;
}

bool ReadSlurm(const EventLine& line, EventContext& context) {
  const string_view text = line.text;
  if (!Contains(text, "Detected ")) return ReadOldSlurm(line, context);
  if (!Contains(text, "oom-kill event") && !Contains(text, "oom_kill event")) return false;
  LogEvent event = MakeEvent("oom_kill_host", line);
  AddNumber(&event, "kills", IntAfter(text, "Detected "));
  string_view step = WordAfter(text, "StepId=", ",;");
  while (!step.empty() && step.back() == '.') step.remove_suffix(1);
  AddText(&event, "step", step);
  context.Emit(std::move(event));
  return true;
}

// "srun: error: gpu01: task 3: Out Of Memory", "tasks 0-2"
bool ReadSrun(const EventLine& line, EventContext& context) {
  const string_view text = line.text;
  if (!Contains(text, "srun: error: ") || !Contains(text, ": Out Of Memory")) return false;
  LogEvent event = MakeEvent("srun_oom", line);
  AddText(&event, "node", Between(text, "srun: error: ", ":", 100));
  string_view tasks = Between(text, ": task ", ":", 100);
  if (tasks.empty()) tasks = Between(text, ": tasks ", ":", 100);
  if (const auto task = base::ParseInt(tasks)) {
    AddNumber(&event, "task", task);
  } else {
    AddText(&event, "tasks", tasks);
  }
  context.Emit(std::move(event));
  return true;
}

bool ReadContainer(const EventLine& line, EventContext& context) {
  const string_view message = MessageOf(line.text);
  if (!Contains(message, "Reason:") || !Contains(message, "OOMKilled")) return false;
  context.Emit(MakeEvent("oom_kill_host", line));
  return true;
}

bool Read(const EventLine& line, EventContext& context) {
  return ReadKernel(line, context) || ReadSlurm(line, context) || ReadSrun(line, context) ||
         ReadContainer(line, context);
}

constexpr auto kAnchors =
    std::to_array<string_view>({"oomkillconstraint", "Killedprocess", "oomkillevent",
                                "exceededmemorylimit", "memorylimit", "OutOfMemory", "OOMKilled"});

}  // namespace

const EventFamily kOomHostFamily = {"oom_host", kAnchors, Read};

}  // namespace epochmeter::ingest::log
