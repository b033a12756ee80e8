// SPDX-License-Identifier: Apache-2.0
// The memory that a training prints or tells as its highest rises all through the run.
//
// Needs an allocator's highest figures over 24 steady steps, as logs have them ("max_mem"), and no
// live bytes: where those are told, gpu_memory_leak judges them. A peak can't fall, so its rising
// is no proof: only one that goes up along a line in windows over the whole run, still does at the
// end, and gained a tenth is told, and never as more than a warning of little certainty. False
// positives: inputs that grow by design (a curriculum), a cache that is still filled.
#include <cmath>

#include "diagnose/memory.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"

namespace epochmeter::diagnose {
namespace {

using model::Finding;
using model::Severity;

struct Growth {
  const RankFacts* rank = nullptr;
  const model::Curve* curve = nullptr;
  std::vector<Floor> floors;
  Trend trend;
  double Ratio() const { return trend.growth / floors.front().lowest.value; }
};

const model::Curve* PeakCurve(const Facts& facts, const RankFacts& rank) {
  if (facts.FrameworkCurve(rank, "allocated_bytes") != nullptr) return nullptr;
  const model::Curve* curve = facts.FrameworkCurve(rank, "max_allocated_bytes");
  return curve != nullptr ? curve : facts.FrameworkCurve(rank, "max_reserved_bytes");
}

Finding Found(const Facts& facts, const Growth& growth) {
  const double first = growth.floors.front().lowest.value;
  const double last = growth.floors.back().lowest.value;
  const bool by_steps = !growth.rank->steps.empty();
  const model::Message rate =
      SayRate(growth.trend, by_steps ? 1000 : 3600,
              by_steps ? Say("in 1000 steps", "每 1000 步") : Say("an hour", "每小时"));
  Finding finding;
  const bool much = growth.Ratio() >= facts.limits()["printed_memory_growth.warning_ratio"];
  finding.severity = much ? Severity::kWarning : Severity::kInfo;
  finding.rank = growth.rank->rank;
  finding.pid = growth.rank->pid;
  finding.confidence = 0.6;
  finding.summary.en =
      fmt::format("{}: the memory that is printed rises all the time: {}, from {} to {}.",
                  growth.rank->name, rate.en, SayBytes(first), SayBytes(last));
  finding.summary.zh = fmt::format("{}：打印的显存一直在上升：{}，从 {} 升至 {}。",
                                   growth.rank->name, rate.zh, SayBytes(first), SayBytes(last));
  finding.explanation =
      Say("Judged by the lowest figure in {} windows. What is printed is the highest so far, which "
          "never falls: longer inputs by and by look the same as tensors that nobody frees.",
          "以 {} 个窗口中的最低值判断。打印的是迄今为止的最高值，不会下降：输入逐渐变长与张量"
          "未被释放看起来相同。",
          growth.floors.size());
  finding.advice = {
      {.framework = "",
       .text = Say("Keep numbers, not tensors: losses and metrics that are added up or put in a "
                   "list over steps must leave the graph first. Record the run with epochmeter to "
                   "see what is live.",
                   "保留数值而不是张量：跨步累加或存入列表的 loss 与指标必须先脱离计算图。用 "
                   "epochmeter 记录训练可看到实际占用。"),
       .code = "total += float(loss)  # not: total += loss"}};
  finding.evidence.push_back({.series = facts.SeriesName(*growth.curve),
                              .interval = {.begin_ns = growth.floors.front().interval.begin_ns,
                                           .end_ns = growth.floors.back().interval.end_ns},
                              .values = {{"first_bytes", first},
                                         {"last_bytes", last},
                                         {"growth_bytes", growth.trend.growth},
                                         {"windows", static_cast<double>(growth.floors.size())}},
                              .note = Say("the lowest of each window", "每个窗口中的最低值"),
                              .steps = {}});
  for (const Floor* floor : {&growth.floors.front(), &growth.floors.back()}) {
    for (const TrainStep& step : growth.rank->steps) {
      if (step.end_ns < floor->lowest.t_ns || step.step == model::kNotKnown) continue;
      finding.evidence.back().steps.push_back(step.step);
      break;
    }
  }
  return finding;
}

Judgement Judge(const Facts& facts) {
  Judgement judgement;
  bool any = false;
  for (const RankFacts& rank : facts.ranks()) {
    Growth growth{.rank = &rank, .curve = PeakCurve(facts, rank), .floors = {}, .trend = {}};
    if (growth.curve == nullptr) continue;
    growth.floors = FloorsOf(LevelPoints(rank, *growth.curve));
    growth.trend =
        JudgeFloors(growth.floors, facts.limits()["gpu_memory_leak.least_bytes"], facts.limits());
    if (growth.trend.kind == TrendKind::kTooShort) continue;
    any = true;
    if (!growth.trend.grows()) continue;
    if (growth.Ratio() < facts.limits()["printed_memory_growth.info_ratio"]) continue;
    judgement.findings.push_back(Found(facts, growth));
  }
  FoldRanks("growth_bytes", &judgement.findings);
  if (any) return judgement;
  return NotApplicable(
      Say("no rank tells its highest memory at {} steps after warm-up without its live bytes",
          "没有任何 rank 在预热之后的 {} 个步骤中只报告显存最高值而不报告实际占用",
          kFewestTrendSamples));
}

}  // namespace

namespace rules {

const RuleDef kPrintedMemoryGrowth = {
    .id = "printed_memory_growth",
    .Title = [] { return Say("Printed memory keeps rising", "打印的显存持续上升"); },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
