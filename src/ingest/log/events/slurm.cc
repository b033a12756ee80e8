// SPDX-License-Identifier: Apache-2.0
// A scheduler ended the job: Slurm's account with its reason, and the time limits of PBS and LSF.
#include <array>

#include "base/strings.h"
#include "ingest/log/events/event_text.h"
#include "ingest/log/events/families.h"

namespace epochmeter::ingest::log {
namespace {

using std::string_view;

// slurmstepd: error: *** JOB 4711 ON node-03 CANCELLED AT 2024-05-06T07:08:09 DUE TO TIME LIMIT ***
bool ReadCancelled(const EventLine& line, EventContext& context) {
  const auto stars = After(line.text, "*** ");
  if (!stars || !Contains(*stars, " CANCELLED AT ")) return false;
  const bool step = base::StartsWith(*stars, "STEP ");
  if (!step && !base::StartsWith(*stars, "JOB ")) return false;
  LogEvent event = MakeEvent("slurm_cancelled", line);
  AddText(&event, "what", step ? "STEP" : "JOB");
  AddText(&event, "id", WordAfter(*stars, step ? "STEP " : "JOB ", ","));
  AddText(&event, "node", WordAfter(*stars, " ON ", ","));
  AddText(&event, "at", WordAfter(*stars, " CANCELLED AT ", ","));
  if (const auto due = After(*stars, " DUE ")) {
    string_view reason = *due;
    if (base::StartsWith(base::ToLowerAscii(reason), "to ")) reason.remove_prefix(3);
    AddText(&event, "reason", base::ToLowerAscii(base::Trim(reason.substr(0, reason.find("***")))));
  }
  context.Emit(std::move(event));
  return true;
}

bool ReadTimeLimit(const EventLine& line, EventContext& context) {
  const string_view text = line.text;
  if (Contains(text, "PBS: job killed: walltime ")) {
    LogEvent event = MakeEvent("time_limit", line);
    AddNumber(&event, "limit_s", IntAfter(text, "exceeded limit "));
    context.Emit(std::move(event));
    return true;
  }
  if (!Contains(text, "TERM_RUNLIMIT: job killed")) return false;
  context.Emit(MakeEvent("time_limit", line));
  return true;
}

bool Read(const EventLine& line, EventContext& context) {
  return ReadCancelled(line, context) || ReadTimeLimit(line, context);
}

constexpr auto kAnchors =
    std::to_array<string_view>({"CANCELLEDAT", "PBSjobkilled", "TERMRUNLIMIT"});

}  // namespace

const EventFamily kSlurmFamily = {"slurm", kAnchors, Read};

}  // namespace epochmeter::ingest::log
