// SPDX-License-Identifier: Apache-2.0
// What the training's processes hold of the host's memory grows for good: lists of results, caches,
// handles that nobody frees.
//
// Judged by the floor (trend.h) of private memory where there is enough of it: the tree's PSS or
// anonymous part, else the anonymous part of the job's cgroup, else what the tree has resident.
// The last two need a witness, because others may live in the cgroup and pages of mapped files are
// resident but give way: a second figure must have grown by half as much. Page cache is in none of
// them. Steps, a saw-tooth, a warm-up that levels off are no leak. False positives: a cache that
// the training fills on purpose; growth inside one epoch, which its end may free, is only remarked
// on.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/clock.h"
#include "diagnose/host_room.h"
#include "diagnose/leak.h"
#include "diagnose/memory.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"

namespace epochmeter::diagnose {
namespace {

using model::Curve;
using model::Finding;
using model::Message;
using model::Severity;

struct Candidate {
  const Curve* curve = nullptr;
  bool needs_witness = false;
};

struct Leak {
  const RankFacts* clock = nullptr;
  const Curve* curve = nullptr;
  HostGrowth growth;
  bool seen = false;  // a witness grew as well, or none was needed
  std::optional<double> seconds_to_limit, limit_bytes;
};

std::array<Candidate, 4> CandidatesOf(const Facts& facts) {
  return {{{facts.TreeCurve("pss_bytes"), false},
           {facts.TreeCurve("anon_bytes"), false},
           {facts.FirstCurve(model::Scope::kCgroup, "memory_anon_bytes"), true},
           {facts.TreeCurve("rss_bytes"), true}}};
}

// Whether another figure of the same processes grew by half as much; nothing without one.
std::optional<bool> Witnessed(const Facts& facts, const Leak& leak) {
  std::optional<bool> witnessed;
  const auto ask = [&](const Curve* curve) {
    if (witnessed || curve == leak.curve) return;
    const auto gain = GainOf(curve, leak.growth.interval);
    if (gain) witnessed = *gain >= leak.growth.trend.growth / 2;
  };
  ask(facts.TreeCurve("anon_bytes"));
  ask(leak.curve->field == "rss_bytes"
          ? facts.FirstCurve(model::Scope::kCgroup, "memory_anon_bytes")
          : facts.TreeCurve("rss_bytes"));
  ask(facts.HostCurve("memory_used_bytes"));
  return witnessed;
}

std::optional<double> StepsOrSecondsASecond(const RankFacts& clock) {
  return clock.steps.empty() ? std::optional(1.0) : StepsASecond(clock);
}

void Forecast(const Facts& facts, Leak* leak) {
  const auto room = HostRoomOf(facts);
  const auto a_second = StepsOrSecondsASecond(*leak->clock);
  if (!room || !a_second) return;
  leak->limit_bytes = room->limit_bytes;
  // What is in use as the judged part ends: after the training all is free again.
  double used = 0;
  for (size_t i = 0; i < room->used->points.t_ns.size(); ++i) {
    if (room->used->points.t_ns[i] > leak->growth.interval.end_ns) break;
    if (std::isfinite(room->used->points.value[i])) used = room->used->points.value[i];
  }
  used += LastOf(room->shared).value_or(0);
  const double rate = leak->growth.trend.slope * *a_second;
  if (rate > 0) leak->seconds_to_limit = std::max(0.0, room->limit_bytes - used) / rate;
}

// The best figure that has enough samples; nothing when none has.
std::optional<Leak> JudgeLeak(const Facts& facts, const RankFacts& clock) {
  const Limits& limits = facts.limits();
  for (const Candidate& candidate : CandidatesOf(facts)) {
    if (candidate.curve == nullptr) continue;
    std::vector<LevelPoint> points = LevelPoints(clock, *candidate.curve);
    if (points.size() < kFewestTrendSamples) continue;
    const double least = std::max(limits["host_memory_leak.least_bytes"],
                                  limits["host_memory_leak.growth_ratio"] * points.front().value);
    Leak leak{.clock = &clock, .curve = candidate.curve};
    leak.growth = JudgeHostLevel(facts, clock, std::move(points), least);
    if (leak.growth.trend.kind == TrendKind::kTooShort) continue;
    if (!leak.growth.trend.grows()) return leak;
    const auto witnessed = Witnessed(facts, leak);
    leak.seen = !candidate.needs_witness || witnessed.value_or(false);
    if (candidate.needs_witness && witnessed && !*witnessed) {
      leak.growth.trend.kind = TrendKind::kUnsteady;
    }
    Forecast(facts, &leak);
    return leak;
  }
  return {};
}

std::vector<model::Advice> HowToStop() {
  return {
      {.framework = "paddle",
       .text = Say(
           "Keep numbers, not tensors or batches, and clear what is collected at the end of "
           "each epoch. Compare two snapshots to see who allocates.",
           "保留数值而不是张量或批次，每轮结束时清空收集的内容。比较两次快照可看出是谁在分配。"),
       .code = "losses.append(float(loss))  # not: losses.append(loss)\n"
               "tracemalloc.start(); tracemalloc.take_snapshot().compare_to(first, 'lineno')"},
      {.framework = "tensorflow",
       .text =
           Say("Build models, datasets and tf.functions once, outside the loop; in a loop call "
               "the model instead of predict.",
               "模型、数据集和 tf.function 只在循环外创建一次；循环内直接调用模型而不是 predict。"),
       .code = "y = model(x, training=False)  # not: model.predict(x)\n"
               "tf.keras.backend.clear_session()"},
      {.framework = "pytorch",
       .text = Say(
           "Keep numbers, not tensors or batches, and clear what is collected at the end of "
           "each epoch. Compare two snapshots to see who allocates.",
           "保留数值而不是张量或批次，每轮结束时清空收集的内容。比较两次快照可看出是谁在分配。"),
       .code = "losses.append(loss.item())  # not: losses.append(loss)\n"
               "tracemalloc.start(); tracemalloc.take_snapshot().compare_to(first, 'lineno')"},
  };
}

// "403 MB an epoch (398 MB to 410 MB)".
Message Rate(const Leak& leak) {
  const Trend& trend = leak.growth.trend;
  const auto steps = StepsAnEpoch(*leak.clock);
  const bool by_steps = !leak.clock->steps.empty();
  const double unit = by_steps ? steps.value_or(1) : 3600;
  if (!by_steps) return SayRate(trend, unit, Say("an hour", "每小时"));
  if (steps) return SayRate(trend, unit, Say("an epoch", "每轮"));
  return SayRate(trend, unit, Say("a step", "每步"));
}

Message WhenFull(const Facts& facts, const Leak& leak) {
  if (!leak.seconds_to_limit || !leak.limit_bytes) return {};
  if (*leak.seconds_to_limit > facts.limits()["host_memory_leak.forecast_s"]) return {};
  return Say(" At this rate {} more of training would meet the limit of {}.",
             "按此速度再训练 {} 将达到上限 {}。", SaySeconds(*leak.seconds_to_limit),
             SayBytes(*leak.limit_bytes));
}

// Within the only epoch that was told, its end may free what was collected.
bool InOneEpoch(const Leak& leak) {
  const auto& rows = leak.clock->rows;
  const bool epochs = std::any_of(rows.begin(), rows.end(), [](const model::EpochRow* row) {
    return row->epoch != model::kNoEpoch;
  });
  return epochs && leak.growth.epochs_passed == 0;
}

model::Evidence EvidenceOf(const Facts& facts, const Leak& leak) {
  const Trend& trend = leak.growth.trend;
  model::Evidence evidence{
      .series = facts.SeriesName(*leak.curve),
      .interval = leak.growth.interval,
      .values = {{"first_floor_bytes", leak.growth.floors.front().lowest.value},
                 {"last_floor_bytes", leak.growth.floors.back().lowest.value},
                 {"growth_bytes", trend.growth}},
      .note = Say("the lowest value of each window after warm-up rises from one to the next",
                  "预热之后每个窗口的最低值逐个升高")};
  const std::string unit = leak.clock->steps.empty() ? "_bytes_per_s" : "_bytes_per_step";
  evidence.values.emplace_back("slope" + unit, trend.slope);
  evidence.values.emplace_back("slope_low" + unit, trend.slope_low);
  evidence.values.emplace_back("slope_high" + unit, trend.slope_high);
  if (const auto steps = StepsAnEpoch(*leak.clock); steps && !leak.clock->steps.empty()) {
    evidence.values.emplace_back("slope_bytes_per_epoch", trend.slope * *steps);
  }
  if (const auto a_second = StepsOrSecondsASecond(*leak.clock)) {
    evidence.values.emplace_back("slope_bytes_per_hour", trend.slope * *a_second * 3600);
  }
  if (leak.limit_bytes) evidence.values.emplace_back("limit_bytes", *leak.limit_bytes);
  if (leak.seconds_to_limit) {
    evidence.values.emplace_back("limit_met_in_s", *leak.seconds_to_limit);
  }
  return evidence;
}

// Tensors that nobody frees hold their nodes of the graph on the host, too: then the device leaks
// more, and is what to mend.
bool FollowsDevice(const Facts& facts, const Leak& leak) {
  if (leak.clock->steps.empty()) return false;
  const auto device = JudgeDeviceGrowth(facts, *leak.clock);
  if (device && device->trend.grows() && device->trend.slope >= leak.growth.trend.slope) {
    return true;
  }
  double gain = 0;
  for (const int32_t gpu : leak.clock->gpus) {
    gain += GainOf(facts.GpuCurve(gpu, "memory_used_bytes"), leak.growth.interval).value_or(0);
  }
  return gain >= leak.growth.trend.growth;
}

Finding Found(const Facts& facts, const Leak& leak) {
  Finding finding;
  const bool follows = FollowsDevice(facts, leak);
  const bool certain = leak.seen && !InOneEpoch(leak) && !follows;
  finding.severity = certain ? Severity::kWarning : Severity::kInfo;
  finding.confidence = !leak.seen ? 0.5 : leak.growth.epochs_passed == 0 ? 0.7 : 0.9;
  if (facts.ranks().size() == 1) {
    finding.rank = leak.clock->rank;
    finding.pid = leak.clock->pid;
  }
  const Message rate = Rate(leak);
  const std::string first = SayBytes(leak.growth.floors.front().lowest.value);
  const std::string last = SayBytes(leak.growth.floors.back().lowest.value);
  finding.summary = Say("The training holds more and more of the host's memory: {}, from {} to {}.",
                        "训练占用的主机内存持续增加：{}，从 {} 增至 {}。", rate.en, first, last);
  finding.summary.zh =
      fmt::format("训练占用的主机内存持续增加：{}，从 {} 增至 {}。", rate.zh, first, last);
  finding.explanation =
      Say("Judged by the lowest value in {} windows after warm-up, page cache left out; {} ends of "
          "epochs did not free it. A cache that is filled on purpose looks the same until it is "
          "full.",
          "以预热之后 {} 个窗口的最低值判断，不含页缓存；其间 {} "
          "轮结束时也未释放。有意填充的缓存在填满之前看起来也是如此。",
          leak.growth.floors.size(), leak.growth.epochs_passed);
  if (follows) {
    finding.explanation.en +=
        " Device memory grows faster: it may be the same tensors, see there first.";
    finding.explanation.zh += "显存增长更快：可能是同一批张量，请先查看显存。";
  }
  const Message when = WhenFull(facts, leak);
  finding.explanation.en += when.en;
  finding.explanation.zh += when.zh;
  finding.advice = HowToStop();
  finding.evidence.push_back(EvidenceOf(facts, leak));
  return finding;
}

Judgement Judge(const Facts& facts) {
  RankFacts whole;
  const auto leak = JudgeLeak(facts, ClockOf(facts, &whole));
  if (!leak) {
    return NotApplicable(
        Say("memory of the training's processes has fewer than {} samples after warm-up",
            "训练进程的内存在预热之后的样本少于 {} 个", kFewestTrendSamples));
  }
  Judgement judgement;
  if (leak->growth.trend.grows()) judgement.findings.push_back(Found(facts, *leak));
  return judgement;
}

}  // namespace

namespace rules {

const RuleDef kHostMemoryLeak = {.id = "host_memory_leak",
                                 .Title = [] { return Say("Host memory leaks", "主机内存泄漏"); },
                                 .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
