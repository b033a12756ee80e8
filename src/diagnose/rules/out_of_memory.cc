// SPDX-License-Identifier: Apache-2.0
// Memory ran out: of a device, told by an exception or the captured log, or of the host, where the
// kernel killed a process of the job or its limit was met as the training was killed.
//
// Says which step, what was asked for, who held the memory and what had grown before. The figures
// are the framework's own sentence where it has them, else the last samples before. False
// positives: a training that catches the exception and goes on (a search for the batch size does)
// gives a warning instead of a critical finding.
#include "diagnose/oom_finding.h"
#include "diagnose/rules/all.h"
#include "model/output_events.h"

namespace epochmeter::diagnose {
namespace {

using model::Event;
using model::EventKind;

bool EndedBadly(const model::Run& run) {
  if (!run.end) return true;
  return run.end->signal.has_value() || run.end->exit_code.value_or(0) != 0;
}

// The last exception of the rank that tells of memory: a chain tells it several times. `printed`:
// of those that were read from the output.
std::optional<OomCase> CaseOf(const RankFacts& rank, bool printed) {
  std::optional<OomCase> found;
  for (const Event* event : rank.events) {
    if (event->kind != EventKind::kException || model::IsFromOutput(*event) != printed) continue;
    const std::string text = event->name + ": " + std::string(event->Text("message").value_or(""));
    auto oom = model::ParseOomText(text);
    // The class of that name is of a device, in torch as in paddle. The host's is MemoryError.
    const bool of_device = event->name.find("OutOfMemory") != std::string::npos;
    if (of_device && (!oom || (oom->host && !oom->asked_bytes))) oom = model::OomText();
    if (!oom) continue;
    const int count = found ? found->count + 1 : 1;
    found = OomCase{.rank = &rank, .t_ns = event->t_ns, .text = *oom, .count = count};
    found->from_log = printed;
    found->step = event->step;
    found->epoch = event->epoch;
  }
  return found;
}

// Of the captured output, where no exception was told.
std::optional<OomCase> CaseInLog(const Facts& facts) {
  const model::Run& run = facts.run();
  if (!EndedBadly(run)) return {};
  for (auto line = run.log.rbegin(); line != run.log.rend(); ++line) {
    const auto oom = model::ParseOomText(line->text);
    if (!oom) continue;
    const RankFacts* only = facts.ranks().size() == 1 ? &facts.ranks().front() : nullptr;
    return OomCase{.rank = only, .t_ns = line->t_ns, .text = *oom, .from_log = true};
  }
  return {};
}

Judgement Judge(const Facts& facts) {
  const model::Run& run = facts.run();
  Judgement judgement;
  bool any = !run.log.empty() || run.end.has_value();
  for (const RankFacts& rank : facts.ranks()) {
    any = any || !rank.events.empty();
    if (const auto found = CaseOf(rank, false))
      judgement.findings.push_back(OomFinding(facts, *found));
  }
  if (judgement.findings.empty()) {
    if (const auto killed = HostOomFinding(facts)) judgement.findings.push_back(*killed);
  }
  if (judgement.findings.empty()) {
    if (const auto found = CaseInLog(facts))
      judgement.findings.push_back(OomFinding(facts, *found));
  }
  // One line of what the output said, where the rest was too much to keep.
  for (const RankFacts& rank : facts.ranks()) {
    if (!judgement.findings.empty() || !EndedBadly(run)) break;
    if (const auto found = CaseOf(rank, true)) {
      judgement.findings.push_back(OomFinding(facts, *found));
    }
  }
  FoldRanks("asked_bytes", &judgement.findings);
  if (any) return judgement;
  return NotApplicable(
      Say("nothing tells how the training ended: no events, no output, no exit code",
          "没有事件、输出或退出码说明训练如何结束"));
}

}  // namespace

namespace rules {

const RuleDef kOutOfMemory = {.id = "out_of_memory",
                              .Title = [] { return Say("Memory ran out", "内存（显存）耗尽"); },
                              .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
