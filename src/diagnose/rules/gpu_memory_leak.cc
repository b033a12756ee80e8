// SPDX-License-Identifier: Apache-2.0
// What the training holds on its device grows for good: tensors that nobody frees.
//
// Judged by the floor of the allocator's live bytes (never by a peak, which only rises): of each
// epoch after the first when there are six, else of eight windows of steps after warm-up; where the
// allocator is read too seldom for those, by what it held at the ends of five epochs, less surely.
// Warm-up that levels off, one jump, a saw-tooth and noise are no leak (trend.h). Without an
// allocator the driver's figure is judged, and only remarked on: a cache of the allocator that
// still fills looks the same. False positives: something that the training means to fill, such as a
// replay buffer on the device, until it is full.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "diagnose/leak.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"

namespace epochmeter::diagnose {
namespace {

using model::Advice;
using model::Evidence;
using model::Finding;
using model::Severity;

constexpr size_t kTableEnds = 4;  // epochs of each end that evidence shows

std::vector<Advice> HowToStop() {
  return {
      {.framework = "paddle",
       .text = Say("Keep numbers, not tensors: what is added up or put in a list over steps must "
                   "leave the graph first. Clear gradients each step.",
                   "跨步累加或存入列表的应是数值而不是张量：先让它脱离计算图；每步清除梯度。"),
       .code = "total += float(loss)  # not: total += loss\n"
               "outputs.append(out.detach().cpu())\noptimizer.clear_grad()"},
      {.framework = "tensorflow",
       .text = Say("Keep numbers, not tensors, and build layers, metrics and tf.functions once, "
                   "outside the loop.",
                   "保留数值而不是张量；层、指标和 tf.function 只在循环外创建一次。"),
       .code =
           "total += float(loss)  # not: losses.append(loss)\ntf.keras.backend.clear_session()"},
      {.framework = "pytorch",
       .text = Say("Keep numbers, not tensors: a loss that is added up or kept in a list holds its "
                   "whole graph. Compare two snapshots to see who allocates.",
                   "保留数值而不是张量：累加或存入列表的 loss 会保留整个计算图。比较两次快照可看出"
                   "是谁在分配。"),
       .code = "total += loss.item()  # not: total += loss\nhistory.append(out.detach().cpu())\n"
               "torch.cuda.memory._record_memory_history(); "
               "torch.cuda.memory._dump_snapshot('epoch1.pickle')"},
  };
}

// The table of floors by epoch, both ends of a long one.
Evidence ByEpoch(const Facts& facts, const DeviceGrowth& growth) {
  Evidence evidence{.series = facts.SeriesName(*growth.curve),
                    .note = Say("the lowest value of each epoch", "每轮中的最低值")};
  std::vector<LevelPoint> all;
  for (size_t i = 0; i < growth.curve->points.t_ns.size(); ++i) {
    const double value = growth.curve->points.value[i];
    if (!model::IsAbsent(value))
      all.push_back({.t_ns = growth.curve->points.t_ns[i], .value = value});
  }
  const std::vector<EpochFloor> floors = EpochFloors(*growth.rank, all);
  for (size_t i = 0; i < floors.size(); ++i) {
    if (i == kTableEnds && floors.size() > 2 * kTableEnds) i = floors.size() - kTableEnds;
    evidence.values.emplace_back(fmt::format("epoch{}_floor_bytes", floors[i].epoch),
                                 floors[i].floor.lowest.value);
  }
  if (!floors.empty()) {
    evidence.interval = {.begin_ns = floors.front().floor.interval.begin_ns,
                         .end_ns = floors.back().floor.interval.end_ns};
  }
  return evidence;
}

Evidence ByWindow(const Facts& facts, const DeviceGrowth& growth) {
  const Trend& trend = growth.trend;
  Evidence evidence{
      .series = facts.SeriesName(*growth.curve),
      .interval = {.begin_ns = growth.floors.front().interval.begin_ns,
                   .end_ns = growth.floors.back().interval.end_ns},
      .values = {{"first_floor_bytes", growth.floors.front().lowest.value},
                 {"last_floor_bytes", growth.floors.back().lowest.value},
                 {"growth_bytes", growth.trend.growth},
                 {"windows", static_cast<double>(growth.floors.size())}},
      .note = growth.by_ends
                  ? Say("what was held at the end of each epoch", "每轮结束时的占用量")
                  : Say("the lowest value of each window after warm-up rises from one to the next",
                        "预热之后每个窗口的最低值逐个升高")};
  const std::string unit = growth.by_steps ? "_bytes_per_step" : "_bytes_per_s";
  evidence.values.emplace_back("slope" + unit, trend.slope);
  evidence.values.emplace_back("slope_low" + unit, trend.slope_low);
  evidence.values.emplace_back("slope_high" + unit, trend.slope_high);
  if (const auto steps = StepsAnEpoch(*growth.rank); steps && growth.by_steps) {
    evidence.values.emplace_back("slope_bytes_per_epoch", trend.slope * *steps);
  }
  if (growth.by_steps) {
    for (const Floor* floor : {&growth.floors.front(), &growth.floors.back()}) {
      evidence.steps.push_back(static_cast<int64_t>(floor->lowest.x));
    }
  }
  return evidence;
}

// "80.1 MB an epoch (80.0 MB to 80.2 MB)", by epochs where there are, else by steps or time.
model::Message Rate(const DeviceGrowth& growth) {
  const Trend& trend = growth.trend;
  const auto steps = StepsAnEpoch(*growth.rank);
  const bool epochs = growth.by_steps && steps;
  const double unit = epochs ? *steps : growth.by_steps ? 1 : 3600;
  if (epochs) return SayRate(trend, unit, Say("an epoch", "每轮"));
  if (growth.by_steps) return SayRate(trend, unit, Say("a step", "每步"));
  return SayRate(trend, unit, Say("an hour", "每小时"));
}

model::Message HowJudged(const DeviceGrowth& growth) {
  if (!growth.of_allocator) {
    return Say(
        "No allocator figures were recorded, so this is what the driver says is in use: a "
        "cache of the framework that still fills looks the same.",
        "没有记录到分配器的数据，因此这是驱动报告的占用量：框架缓存仍在增长时看起来也是如此。");
  }
  if (growth.by_ends) {
    return Say(
        "The allocator was read seldom, so what it held at the ends of {} epochs is judged: it "
        "rose by about as much in each. A buffer that the training means to fill looks the same.",
        "分配器读取较少，因此以 {} 轮结束时的占用量判断：每轮的增加量大致相同。"
        "有意填充的缓冲区看起来也是如此。",
        growth.floors.size());
  }
  model::Message how =
      Say("What outlives a step is judged by its lowest value in {} windows after warm-up: it rose "
          "steadily and does not level off.",
          "以预热之后 {} 个窗口的最低值判断步骤之后仍被占用的显存：它稳定上升且没有趋于平缓。",
          growth.floors.size());
  const model::Message epochs = growth.epochs_passed > 0
                                    ? Say(" The ends of {} epochs did not free it.",
                                          "其间 {} 轮结束时也未释放。", growth.epochs_passed)
                                    : Say(" No epoch ended meanwhile: its end may free it.",
                                          "其间没有一轮结束：结束时可能会释放。");
  const model::Message buffer =
      Say(" A buffer that the training means to fill looks the same until it is full.",
          "有意填充的缓冲区在填满之前看起来也是如此。");
  how.en += epochs.en + buffer.en;
  how.zh += epochs.zh + buffer.zh;
  return how;
}

Finding Found(const Facts& facts, const DeviceGrowth& growth) {
  Finding finding;
  finding.severity = growth.of_allocator ? Severity::kWarning : Severity::kInfo;
  finding.rank = growth.rank->rank;
  finding.pid = growth.rank->pid;
  finding.gpu = growth.gpu;
  finding.confidence = growth.confidence;
  const model::Message rate = Rate(growth);
  const double first = growth.floors.front().lowest.value;
  const double last = growth.floors.back().lowest.value;
  finding.summary.en = fmt::format("{} holds more and more device memory: {}, from {} to {}.",
                                   growth.rank->name, rate.en, SayBytes(first), SayBytes(last));
  finding.summary.zh = fmt::format("{} 占用的显存持续增加：{}，从 {} 增至 {}。", growth.rank->name,
                                   rate.zh, SayBytes(first), SayBytes(last));
  finding.explanation = HowJudged(growth);
  finding.advice = HowToStop();
  finding.evidence.push_back(ByWindow(facts, growth));
  Evidence table = ByEpoch(facts, growth);
  if (table.values.size() > 1) finding.evidence.push_back(std::move(table));
  return finding;
}

Judgement Judge(const Facts& facts) {
  Judgement judgement;
  bool any = false;
  for (const RankFacts& rank : facts.ranks()) {
    const auto growth = JudgeDeviceGrowth(facts, rank);
    if (!growth) continue;
    any = true;
    if (growth->trend.grows()) judgement.findings.push_back(Found(facts, *growth));
  }
  FoldRanks("growth_bytes", &judgement.findings);
  if (any) return judgement;
  return NotApplicable(
      Say("no rank has {} samples of its device memory after warm-up; import epochmeter in the "
          "training so that its allocator is recorded",
          "没有任何 rank 在预热之后有 {} 个显存样本；在训练中 import epochmeter 以记录分配器数据",
          kFewestTrendSamples));
}

}  // namespace

namespace rules {

const RuleDef kGpuMemoryLeak = {.id = "gpu_memory_leak",
                                .Title = [] { return Say("Device memory leaks", "显存泄漏"); },
                                .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
