// SPDX-License-Identifier: Apache-2.0
// The training took no step for far longer than usual, while its process lived.
//
// Needs three steps of a rank. A hang in a collective shows as a GPU that reads busy at little SM
// activity or power; the rank that the others wait for is the one whose GPU is idle, that failed,
// or that took fewer steps. Start-up, compilation, evaluation, checkpoints, regular pauses between
// epochs and the end of the training are none. False positives: evaluation or saving that nobody
// tells of, for far longer than usual; a process that was stopped or suspended on purpose.
#include <algorithm>
#include <limits>

#include "diagnose/activity.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"
#include "diagnose/stalls.h"

namespace epochmeter::diagnose {
namespace {

using model::Advice;
using model::Finding;
using model::Interval;
using model::Severity;

constexpr double kSpinBusy = 0.8;           // utilisation of a GPU that waits inside a collective
constexpr double kSpinSm = 0.35;            // and its SM activity, at most
constexpr double kSpinPower = 0.5;          // or power by its limit
constexpr double kIdleBusy = 0.3;           // utilisation of one that is waited for
constexpr int64_t kEdgeNs = 1'000'000'000;  // at both ends, where windows of figures reach out
constexpr size_t kMostNamed = 8;
constexpr size_t kMostListed = 5;

// Stalls of several ranks at the same time.
struct Group {
  std::vector<Stall> stalls;
  Interval interval{.begin_ns = 0, .end_ns = 0};
  bool open = false;
  std::vector<size_t> waiting, culprits;  // indexes in Facts::ranks()
  double Seconds() const { return TotalSeconds(std::span(&interval, 1)); }
};

enum class GpuSign : uint8_t { kUnknown, kSpins, kIdle, kWorks };

GpuSign SignOf(const Facts& facts, const RankFacts& rank, const Interval& interval) {
  Interval inner = interval;
  if (inner.end_ns - inner.begin_ns > 4 * kEdgeNs) {
    inner.begin_ns += kEdgeNs;
    inner.end_ns -= kEdgeNs;
  }
  const std::span<const Interval> one(&inner, 1);
  const auto busy = MeanOver(facts, rank.gpus, "utilization_ratio", one);
  if (!busy) return GpuSign::kUnknown;
  if (*busy < kIdleBusy) return GpuSign::kIdle;
  if (*busy < kSpinBusy) return GpuSign::kUnknown;
  if (const auto sm = MeanOver(facts, rank.gpus, "sm_active_ratio", one)) {
    return *sm < kSpinSm ? GpuSign::kSpins : GpuSign::kWorks;
  }
  const auto power = MeanOver(facts, rank.gpus, "power_w", one);
  const auto limit = rank.gpus.empty() ? std::nullopt : PowerLimit(facts, rank.gpus.front());
  if (!power || !limit) return GpuSign::kUnknown;
  return *power < kSpinPower * *limit ? GpuSign::kSpins : GpuSign::kWorks;
}

// Whether the rank can't take part any more: it failed or ended.
bool IsGone(const RankFacts& rank, int64_t by_ns) {
  return std::any_of(rank.events.begin(), rank.events.end(), [&](const model::Event* event) {
    return event->t_ns <= by_ns && (event->kind == model::EventKind::kException ||
                                    event->kind == model::EventKind::kTrainEnd);
  });
}

// Who waits and for whom. Without any sign of it nobody is named.
void NameRanks(const Facts& facts, Group* group) {
  std::vector<size_t> idle;
  for (size_t i = 0; i < facts.ranks().size(); ++i) {
    const RankFacts& rank = facts.ranks()[i];
    const GpuSign sign = SignOf(facts, rank, group->interval);
    if (sign == GpuSign::kSpins) group->waiting.push_back(i);
    const bool gone = IsGone(rank, group->interval.begin_ns + kEdgeNs);
    if (gone || sign == GpuSign::kIdle) idle.push_back(i);
  }
  if (!group->waiting.empty()) group->culprits = idle;
  if (!group->culprits.empty() || facts.ranks().size() < 2) return;
  // All wait, or nothing is known of the GPUs: the one that took fewer steps than all others.
  int64_t least = std::numeric_limits<int64_t>::max();
  std::vector<size_t> behind;
  bool differ = false;
  for (const Stall& stall : group->stalls) {
    if (stall.after_step == model::kNotKnown) return;
    differ = differ || (least != std::numeric_limits<int64_t>::max() && stall.after_step != least);
    if (stall.after_step < least) behind.clear();
    least = std::min(least, stall.after_step);
    if (stall.after_step == least) behind.push_back(stall.rank);
  }
  if (differ && behind.size() * 2 < group->stalls.size()) group->culprits = behind;
}

std::vector<Group> GroupStalls(const Facts& facts) {
  std::vector<Stall> stalls;
  for (size_t i = 0; i < facts.ranks().size(); ++i) {
    if (facts.ranks()[i].steps.empty()) continue;
    const auto of_rank = StallsOf(facts, i, facts.limits()["stalled_steps.factor"],
                                  facts.limits()["stalled_steps.floor_s"]);
    stalls.insert(stalls.end(), of_rank.begin(), of_rank.end());
  }
  std::stable_sort(stalls.begin(), stalls.end(), [](const Stall& a, const Stall& b) {
    return a.interval.begin_ns < b.interval.begin_ns;
  });
  std::vector<Group> groups;
  for (const Stall& stall : stalls) {
    if (groups.empty() || stall.interval.begin_ns >= groups.back().interval.end_ns) {
      groups.push_back({.stalls = {}, .interval = stall.interval});
    }
    Group& group = groups.back();
    group.stalls.push_back(stall);
    group.interval.end_ns = std::max(group.interval.end_ns, stall.interval.end_ns);
    group.open = group.open || stall.open;
  }
  return groups;
}

// Only where it matters: a run may have any number of stalls and of ranks.
void NameInLongest(const Facts& facts, std::vector<Group>* groups) {
  std::vector<Group*> longest;
  for (Group& group : *groups) longest.push_back(&group);
  std::stable_sort(longest.begin(), longest.end(), [](const Group* a, const Group* b) {
    return std::pair(a->open, a->Seconds()) > std::pair(b->open, b->Seconds());
  });
  if (longest.size() > kMostListed) longest.resize(kMostListed);
  for (Group* group : longest) NameRanks(facts, group);
}

// The run may have gone on to other work and ended well, when nothing shows that it hung.
bool EndedWell(const Facts& facts, const Group& group) {
  const auto& end = facts.run().end;
  const bool clean = end && end->reason == "exited" && end->exit_code == 0;
  const bool told = std::all_of(group.stalls.begin(), group.stalls.end(),
                                [](const Stall& stall) { return stall.ended; });
  return (told || (group.open && clean)) && group.waiting.empty();
}

Severity SeverityOf(const Facts& facts, const Group& group) {
  if (group.open) return Severity::kCritical;
  const bool hung = !group.waiting.empty();
  const double share = group.Seconds() / std::max(facts.duration_s(), 1e-9);
  const bool lasted = group.Seconds() >= facts.limits()["stalled_steps.recovered_s"] ||
                      share >= facts.limits()["stalled_steps.recovered_ratio"];
  return hung || lasted ? Severity::kWarning : Severity::kInfo;
}

std::string Names(const Facts& facts, const std::vector<size_t>& ranks) {
  std::string names;
  for (size_t i = 0; i < std::min(ranks.size(), kMostNamed); ++i) {
    names += (i == 0 ? "" : ", ") + facts.ranks()[ranks[i]].name;
  }
  if (ranks.size() > kMostNamed) names += ", …";
  return names;
}

std::vector<Advice> HowToFindOut() {
  const auto text =
      Say("While it hangs, look at the Python stack of every rank; let collectives "
          "fail after a timeout instead of waiting for ever.",
          "挂起时查看每个 rank 的 Python 调用栈；让集合通信在超时后报错，"
          "而不是无限等待。");
  return {{.framework = "paddle",
           .text = text,
           .code = "py-spy dump --pid PID\n"
                   "FLAGS_enable_async_trace=1  # in the environment: reports stuck collectives"},
          {.framework = "tensorflow",
           .text = text,
           .code = "py-spy dump --pid PID\n"
                   "NCCL_DEBUG=INFO  # in the environment"},
          {.framework = "pytorch",
           .text = text,
           .code = "py-spy dump --pid PID\n"
                   "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1  # environment\n"
                   "dist.init_process_group('nccl', timeout=timedelta(minutes=5))"}};
}

model::Message Explain(const Facts& facts, const Group& group) {
  if (!group.waiting.empty() && !group.culprits.empty()) {
    return Say(
        "{} waited inside a collective: the GPU reads busy and does next to nothing. {} did "
        "not take part: its GPU was idle, or it had failed or ended.",
        "{} 在集合通信中等待：GPU 显示繁忙但几乎没有做事。{} 没有参与：其 GPU 空闲，"
        "或该 rank 已失败或结束。",
        Names(facts, group.waiting), Names(facts, group.culprits));
  }
  if (!group.waiting.empty()) {
    return Say(
        "{}: the GPU reads busy and does next to nothing, as where a collective or a kernel "
        "waits for ever.",
        "{}：GPU 显示繁忙但几乎没有做事，如同集合通信或内核在无限等待。",
        Names(facts, group.waiting));
  }
  if (!group.culprits.empty()) {
    return Say("{} took fewer steps than the others, which then waited.",
               "{} 执行的步数比其他 rank 少，其他 rank 随后在等待。", Names(facts, group.culprits));
  }
  return Say("Neither evaluation, a checkpoint nor compilation was told for that time.",
             "这段时间内没有报告评估、检查点或编译。");
}

model::Evidence EvidenceOf(const Facts& facts, const Stall& stall) {
  const RankFacts& rank = facts.ranks()[stall.rank];
  const std::span<const Interval> one(&stall.interval, 1);
  model::Evidence evidence{
      .series = rank.name + " duration_s",
      .interval = stall.interval,
      .values = {{"silent_s", TotalSeconds(one)}, {"usual_period_s", stall.median_s}},
      .note = {},
      .steps = {}};
  if (stall.after_step != model::kNotKnown) evidence.steps = {stall.after_step};
  for (const char* field : {"utilization_ratio", "sm_active_ratio", "power_w"}) {
    const auto mean = MeanOver(facts, rank.gpus, field, one);
    if (mean) evidence.values.emplace_back(field, *mean);
  }
  return evidence;
}

Finding FindingOf(const Facts& facts, const std::vector<Group>& groups, const Group& worst) {
  const Stall& first = worst.stalls.front();
  Finding finding;
  finding.severity = SeverityOf(facts, worst);
  if (worst.culprits.size() == 1) {
    finding.rank = facts.ranks()[worst.culprits.front()].rank;
    finding.pid = facts.ranks()[worst.culprits.front()].pid;
  }
  finding.confidence = !worst.waiting.empty() ? 0.95 : worst.open ? 0.8 : 0.7;
  const std::string step =
      first.after_step == model::kNotKnown ? "?" : std::to_string(first.after_step);
  finding.summary =
      worst.open
          ? Say("No step after step {} for {} until the end of the recording; a step usually comes "
                "every {}.",
                "第 {} 步之后 {} 内再没有新的步骤，直到记录结束；通常每 {} 就有一步。", step,
                SaySeconds(worst.Seconds()), SaySeconds(first.median_s))
          : Say("No step after step {} for {}; a step usually comes every {}. Such stalls in "
                "all: {}.",
                "第 {} 步之后 {} 内没有新的步骤；通常每 {} 就有一步。共有 {} 次这样的停滞。", step,
                SaySeconds(worst.Seconds()), SaySeconds(first.median_s), groups.size());
  finding.explanation = Explain(facts, worst);
  finding.advice = HowToFindOut();
  double lost_s = 0;
  for (const Group& group : groups) lost_s += group.Seconds();
  finding.lost_gpu_s = lost_s * static_cast<double>(std::max<size_t>(facts.job_gpus(), 1));
  finding.gain_ratio = std::min(1.0, lost_s / std::max(facts.duration_s(), 1e-9));
  for (size_t i = 0; i < std::min(worst.stalls.size(), kMostNamed); ++i) {
    finding.evidence.push_back(EvidenceOf(facts, worst.stalls[i]));
  }
  size_t listed = 0;
  for (const Group& group : groups) {
    if (&group == &worst || listed++ >= kMostListed) continue;
    finding.evidence.push_back(EvidenceOf(facts, group.stalls.front()));
  }
  return finding;
}

Judgement Judge(const Facts& facts) {
  const bool any =
      std::any_of(facts.ranks().begin(), facts.ranks().end(),
                  [](const RankFacts& rank) { return StepPeriodSeconds(rank).has_value(); });
  if (!any) {
    return NotApplicable(
        Say("no rank tells at least four steps", "没有任何 rank 报告至少四个步骤"));
  }
  std::vector<Group> groups = GroupStalls(facts);
  NameInLongest(facts, &groups);
  std::erase_if(groups, [&](const Group& group) { return EndedWell(facts, group); });
  Judgement judgement;
  if (groups.empty()) return judgement;
  const auto worst =
      std::max_element(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
        return std::pair(a.open, a.Seconds()) < std::pair(b.open, b.Seconds());
      });
  judgement.findings.push_back(FindingOf(facts, groups, *worst));
  return judgement;
}

}  // namespace

namespace rules {

const RuleDef kStalledSteps = {
    .id = "stalled_steps",
    .Title = [] { return Say("The training stopped taking steps", "训练停止前进"); },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
