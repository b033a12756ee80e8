// SPDX-License-Identifier: Apache-2.0
// One rank holds the others up; names it.
//
// Needs at least two ranks with ten steady steps. Ranks that step together (a collective ends every
// step) all take the same time: the culprit is the one that does not wait in the collective, by its
// own data wait, its communication phases, or its GPU, which reads idler than those that wait.
// Ranks whose step times differ are compared step by step with the median of the others, and window
// by window with the fastest. False positives: rank 0 that logs and evaluates by design; pipelines
// whose stages differ by design. A rank that was given less to do is gpu_imbalance's.
#include <algorithm>
#include <cmath>

#include "diagnose/activity.h"
#include "diagnose/rank_times.h"
#include "diagnose/rank_waits.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"

namespace epochmeter::diagnose {
namespace {

using model::Advice;
using model::Finding;
using model::Interval;
using model::Severity;

constexpr size_t kFewestSteps = 10;
constexpr size_t kMostNamed = 8;

std::vector<Advice> HowToFindTheCause() {
  const auto text = Say(
      "Look at what only this rank does: its data (a slower disk, larger samples), logging, "
      "its share of the CPU, and its GPU's clocks and PCIe link. Compare the time before the "
      "collective on all ranks with a profiler, and pin each rank to the CPUs beside its GPU.",
      "查看只有该 rank 才做的事：它的数据（磁盘更慢、样本更大）、日志、CPU 份额，以及它的 GPU "
      "时钟和 PCIe 链路。用性能剖析比较各 rank 在集合通信之前的时间，并把每个 rank 绑定到靠近其 "
      "GPU 的 CPU。");
  return {{.framework = "paddle",
           .text = text,
           .code = "prof = paddle.profiler.Profiler(scheduler=(100, 110))  # on every rank"},
          {.framework = "tensorflow",
           .text = text,
           .code = "tf.profiler.experimental.start(f'log/worker{index}')  # on every worker"},
          {.framework = "pytorch",
           .text = text,
           .code = "with torch.profiler.profile(with_stack=True) as prof: ...  # on every rank"}};
}

std::string Names(const Facts& facts, const std::vector<size_t>& ranks) {
  std::string names;
  for (size_t i = 0; i < std::min(ranks.size(), kMostNamed); ++i) {
    names += (i == 0 ? "" : ", ") + facts.ranks()[ranks[i]].name;
  }
  if (ranks.size() > kMostNamed) names += ", …";
  return names;
}

Interval SteadyEnds(const RankFacts& rank) {
  if (rank.steady.empty()) return rank.training;
  return {.begin_ns = rank.steady.front().begin_ns, .end_ns = rank.steady.back().end_ns};
}

void SetRank(const Facts& facts, const std::vector<size_t>& ranks, Finding* finding) {
  if (ranks.size() != 1) return;
  const RankFacts& culprit = facts.ranks()[ranks.front()];
  finding->rank = culprit.rank;
  finding->pid = culprit.pid;
  if (culprit.gpus.size() == 1) finding->gpu = culprit.gpus.front();
}

model::Message HowSeen(const HeldUpBy& worst) {
  const std::string own = SayPercent(worst.own);
  const std::string others = SayPercent(worst.others);
  switch (worst.sign) {
    case WaitSign::kDataWait:
      return Say(
          "It waits for its own data in {} of the time of its steps, the others in {}; "
          "they wait for it inside the collective.",
          "它的步骤时间中有 {} 在等待自己的数据，其他 rank 为 {}；其他 rank 在集合通信中"
          "等待它。",
          own, others);
    case WaitSign::kComm:
      return Say(
          "It spends {} of the time of its steps in communication, the others {}: they come "
          "first and wait for it.",
          "它的步骤时间中有 {} 用于通信，其他 rank 为 {}：其他 rank 先到并等待它。", own, others);
    case WaitSign::kUtilization:
      break;
  }
  return Say(
      "Its GPU reads {} busy, those of the others {}: a GPU that waits inside a collective "
      "reads busy, so the idler one is the one that is waited for.",
      "它的 GPU 利用率为 {}，其他为 {}：在集合通信中等待的 GPU 显示繁忙，因此较空闲的那个才是"
      "被等待的。",
      own, others);
}

model::Evidence EvidenceOf(const Facts& facts, const HeldUpBy& held) {
  const RankFacts& rank = facts.ranks()[held.rank];
  model::Evidence evidence{.series = rank.name + " duration_s",
                           .interval = SteadyEnds(rank),
                           .values = {},
                           .note = {},
                           .steps = {}};
  switch (held.sign) {
    case WaitSign::kDataWait:
      evidence.series = rank.name + " data_wait_s";
      evidence.values = {{"data_wait_ratio", held.own}, {"others_data_wait_ratio", held.others}};
      break;
    case WaitSign::kComm:
      evidence.values = {{"comm_ratio", held.own}, {"others_comm_ratio", held.others}};
      break;
    case WaitSign::kUtilization:
      if (!rank.gpus.empty()) {
        evidence.series = "gpu" + std::to_string(rank.gpus.front()) + " utilization_ratio";
      }
      evidence.values = {{"utilization_ratio", held.own},
                         {"others_utilization_ratio", held.others}};
      for (const char* field : {"sm_active_ratio", "power_w"}) {
        const auto mean = MeanOver(facts, rank.gpus, field, SteadySpans(rank));
        if (mean) evidence.values.emplace_back(field, *mean);
      }
      break;
  }
  if (const auto median = MedianStepSeconds(rank)) evidence.values.emplace_back("p50_s", *median);
  return evidence;
}

Finding HeldUp(const Facts& facts, const std::vector<HeldUpBy>& held) {
  const HeldUpBy& worst = held.front();
  std::vector<size_t> ranks;
  for (const HeldUpBy& by : held) ranks.push_back(by.rank);
  Finding finding;
  finding.severity = Severity::kWarning;
  SetRank(facts, ranks, &finding);
  finding.confidence = worst.confidence;
  finding.summary =
      Say("{} of {} ranks hold the others up ({}), for about {} of each step.",
          "{1} 个 rank 中有 {0} 个拖慢了其他 rank（{2}），约占每步的 {3}。", ranks.size(),
          facts.ranks().size(), Names(facts, ranks), SayPercent(worst.held_ratio));
  if (ranks.size() == 1) {
    finding.summary = Say("{} holds the others of {} ranks up, for about {} of each step.",
                          "{} 拖慢了全部 {} 个 rank，约占每步的 {}。", Names(facts, ranks),
                          facts.ranks().size(), SayPercent(worst.held_ratio));
  }
  const model::Message seen = HowSeen(worst);
  const auto since = worst.since_start ? Say(" It is so since the start.", "从一开始就是如此。")
                                       : Say(" It was not so at the start.", "开始时并非如此。");
  finding.explanation = {.en = seen.en + since.en, .zh = seen.zh + since.zh};
  finding.advice = HowToFindTheCause();
  const double lost_s = worst.held_ratio * facts.ranks()[worst.rank].SteadySeconds();
  const size_t gpus = std::max<size_t>(facts.job_gpus(), 1);
  finding.lost_gpu_s = lost_s * static_cast<double>(gpus);
  finding.gain_ratio = std::min(1.0, lost_s / std::max(facts.duration_s(), 1e-9));
  for (size_t i = 0; i < std::min(held.size(), kMostNamed); ++i) {
    finding.evidence.push_back(EvidenceOf(facts, held[i]));
  }
  return finding;
}

// Ranks found by their step times, the one that lost most first.
struct Slow {
  std::vector<size_t> ranks;
  bool persistent = false;  // the first of them, over most windows
};

Slow SlowRanks(const Facts& facts, const std::vector<RankTime>& times) {
  Slow slow;
  const double most = facts.limits()["straggler_rank.windows_ratio"];
  const auto persistent = [&](const RankTime& time) {
    return time.windows > 0 &&
           static_cast<double>(time.windows_behind) >= most * static_cast<double>(time.windows);
  };
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i].slow > 0 || persistent(times[i])) slow.ranks.push_back(i);
  }
  std::stable_sort(slow.ranks.begin(), slow.ranks.end(),
                   [&](size_t a, size_t b) { return times[a].excess_s > times[b].excess_s; });
  slow.persistent = !slow.ranks.empty() && persistent(times[slow.ranks.front()]);
  return slow;
}

Finding BySteps(const Facts& facts, const std::vector<RankTime>& times, const Slow& slow,
                Severity severity) {
  const RankTime& worst = times[slow.ranks.front()];
  Finding finding;
  finding.severity = severity;
  SetRank(facts, slow.ranks, &finding);
  finding.confidence = severity == Severity::kWarning ? 0.9 : 0.7;
  finding.summary = Say(
      "{} of {} ranks take longer for the same steps ({}); the worst up to {} times the median "
      "of the others.",
      "{1} 个 rank 中有 {0} 个执行相同步骤的时间更长（{2}）；最慢的达到其他 rank 中位数的 {3} 倍。",
      slow.ranks.size(), facts.ranks().size(), Names(facts, slow.ranks),
      SayNumber(worst.worst_ratio));
  finding.explanation =
      slow.persistent
          ? Say("It is behind the fastest rank in {} of {} stretches of {} steps, from the start "
                "or by design.",
                "它在 {} / {} 个各 {} 步的区间内落后于最快的 rank，自始如此或出于设计。",
                worst.windows_behind, worst.windows, kWindowSteps)
          : Say("Three of eight steps in a row were slow; it began by step {} and was last seen at "
                "step {}.",
                "连续八步中有三步较慢；不晚于第 {} 步开始，最后一次在第 {} 步。",
                worst.first_slow_step, worst.last_slow_step);
  finding.advice = HowToFindTheCause();
  if (worst.excess_s > 0) finding.lost_gpu_s = worst.excess_s;
  for (size_t i = 0; i < std::min(slow.ranks.size(), kMostNamed); ++i) {
    const RankTime& time = times[slow.ranks[i]];
    const RankFacts& rank = facts.ranks()[slow.ranks[i]];
    model::Evidence evidence{.series = rank.name + " duration_s",
                             .interval = SteadyEnds(rank),
                             .values = {{"p50_s", time.median_s},
                                        {"slow_steps", static_cast<double>(time.slow)},
                                        {"worst_ratio", time.worst_ratio},
                                        {"excess_s", time.excess_s}},
                             .note = {},
                             .steps = {}};
    if (time.slow > 0) evidence.steps = {time.first_slow_step, time.last_slow_step};
    finding.evidence.push_back(std::move(evidence));
  }
  return finding;
}

std::optional<Finding> JudgeTimes(const Facts& facts) {
  const Limits& limits = facts.limits();
  const size_t count = facts.ranks().size();
  const double of_best = limits["straggler_rank.of_best_ratio"];
  const std::vector<RankStep> steps = ComparableSteps(facts);
  const std::vector<RankTime> clearly =
      CompareRanks(steps, count, limits["straggler_rank.warning_factor"], of_best);
  const Slow slow = SlowRanks(facts, clearly);
  if (!slow.ranks.empty()) return BySteps(facts, clearly, slow, Severity::kWarning);
  // A little slower than the others: worth knowing where it lasts.
  std::vector<RankTime> little =
      CompareRanks(steps, count, limits["straggler_rank.info_factor"], 0);
  for (RankTime& time : little) {
    if (time.slow < kWindowSteps) time = {};
  }
  const Slow slower = SlowRanks(facts, little);
  if (slower.ranks.empty()) return {};
  return BySteps(facts, little, slower, Severity::kInfo);
}

Judgement Judge(const Facts& facts) {
  const auto ready =
      std::count_if(facts.ranks().begin(), facts.ranks().end(), [](const RankFacts& rank) {
        return std::count_if(rank.steps.begin(), rank.steps.end(), [](const TrainStep& step) {
                 return !step.warm_up;
               }) >= static_cast<int64_t>(kFewestSteps);
      });
  if (ready < 2) {
    return NotApplicable(
        Say("needs two ranks with at least {} steps after warm-up; the run tells "
            "of {}",
            "需要两个在预热之后至少有 {} 步的 rank；该运行只有 {} 个", kFewestSteps, ready));
  }
  Judgement judgement;
  const bool together = StepTogether(facts);
  if (together) {
    const auto held = FindHeldUpBy(facts, facts.limits()["straggler_rank.held_ratio"]);
    if (!held.empty()) {
      judgement.findings.push_back(HeldUp(facts, held));
      return judgement;
    }
  }
  if (std::optional<Finding> finding = JudgeTimes(facts)) {
    judgement.findings.push_back(std::move(*finding));
  } else if (together && !CanTellWaits(facts)) {
    return NotApplicable(
        Say("the ranks step together, and neither data waits, communication "
            "phases nor the utilisation of their GPUs tell who waits for whom",
            "各 rank 同步推进，而数据等待、通信阶段和 GPU 利用率都无法说明谁在"
            "等谁"));
  }
  return judgement;
}

}  // namespace

namespace rules {

const RuleDef kStragglerRank = {
    .id = "straggler_rank",
    .Title = [] { return Say("A rank holds the others up", "有 rank 拖慢了其他 rank"); },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
