// SPDX-License-Identifier: Apache-2.0
// Steps take ever longer, or took longer from some point on and never got fast again.
//
// Needs 32 steps with durations, else a throughput told at as many. They are cut into eight parts
// of equally many steps, and the medians of the last two are compared with the fastest of the first
// half: the late parts must lie apart from it (their lower quartile above its upper one), and stay
// slow to the end. Only ranks that go slower than before are told, not how fast they are. False
// positives: sequences or images that grow by design (a curriculum, progressive sizes), a second
// stage of the training; where batch sizes are told, time counts per sample.
#include <algorithm>
#include <array>
#include <cmath>

#include "diagnose/rules/all.h"
#include "diagnose/say.h"
#include "diagnose/scalars.h"
#include "diagnose/statistics.h"

namespace epochmeter::diagnose {
namespace {

using model::Finding;
using model::Severity;

constexpr size_t kParts = 8;
constexpr size_t kFewestSteps = 32;
constexpr size_t kMostFindings = 8;
constexpr double kSlowAgain = 0.8;  // of the ratio at the end, that each later part must have

// What a step cost: s, s per sample, or the inverse of a rate.
struct Pace {
  int64_t begin_ns = 0, end_ns = 0;
  int64_t step = model::kNotKnown;
  double cost = 0;
  double spent_s = 0;  // 0: not known
};

struct Slowing {
  bool by_rate = false;
  double early = 0, late = 0;  // medians of the cost
  Pace from;                   // where the slow part begins
  model::Interval before{.begin_ns = 0, .end_ns = 0};
  model::Interval after{.begin_ns = 0, .end_ns = 0};
  double lost_s = 0;
  size_t steps = 0;
  double Ratio() const { return late / early; }
};

std::vector<Pace> Durations(const RankFacts& rank) {
  const bool batches = std::all_of(rank.steps.begin(), rank.steps.end(), [](const TrainStep& step) {
    return step.batch_size > 0;  // false for what is absent
  });
  std::vector<Pace> paces;
  for (const TrainStep& step : rank.steps) {
    if (step.warm_up || !(step.duration_s > 0) || !std::isfinite(step.duration_s)) continue;
    const double size = batches ? step.batch_size : 1;
    paces.push_back({.begin_ns = step.begin_ns,
                     .end_ns = step.end_ns,
                     .step = step.step,
                     .cost = step.duration_s / step.steps / size,
                     .spent_s = step.duration_s});
  }
  return paces;
}

std::vector<Pace> Rates(const RankFacts& rank) {
  std::vector<Pace> paces;
  for (const ScalarSeries& series : ScalarsOf(rank, "throughput_per_s")) {
    if (series.told_by != model::EventKind::kStep) continue;
    for (const ScalarPoint& point : series.points) {
      if (!(point.value > 0) || !std::isfinite(point.value)) continue;
      paces.push_back({.begin_ns = point.t_ns,
                       .end_ns = point.t_ns,
                       .step = point.step,
                       .cost = 1 / point.value});
    }
  }
  return paces;
}

struct Part {
  double low = 0, median = 0, high = 0;  // quartiles
};

std::array<Part, kParts> PartsOf(const std::vector<Pace>& paces) {
  std::array<Part, kParts> parts;
  for (size_t i = 0; i < kParts; ++i) {
    std::vector<double> costs;
    for (size_t at = i * paces.size() / kParts; at < (i + 1) * paces.size() / kParts; ++at) {
      costs.push_back(paces[at].cost);
    }
    std::sort(costs.begin(), costs.end());
    parts[i] = {.low = *Percentile(costs, 0.25),
                .median = *Percentile(costs, 0.5),
                .high = *Percentile(costs, 0.75)};
  }
  return parts;
}

// Nothing when the steps are as fast at the end as before.
std::optional<Slowing> SlowingOf(const std::vector<Pace>& paces, double least_ratio) {
  const auto parts = PartsOf(paces);
  const auto faster = [](const Part& a, const Part& b) { return a.median < b.median; };
  const auto fast = std::min_element(parts.begin(), parts.begin() + kParts / 2, faster);
  const Part& before_last = parts[kParts - 2];
  const Part& last = parts[kParts - 1];
  Slowing slowing{.early = fast->median, .late = std::min(before_last.median, last.median)};
  if (!(slowing.early > 0) || slowing.Ratio() < least_ratio) return {};
  if (before_last.low <= fast->high || last.low <= fast->high) return {};
  size_t first = kParts - 2;
  const double slow = std::max(1.0, slowing.Ratio() * kSlowAgain);
  while (first > 0 && parts[first - 1].median >= std::min(slow, least_ratio) * slowing.early &&
         parts[first - 1].low > fast->high) {
    --first;
  }
  const size_t at = first * paces.size() / kParts;
  const auto fastest = static_cast<size_t>(fast - parts.begin());
  slowing.from = paces[at];
  slowing.before = {.begin_ns = paces[fastest * paces.size() / kParts].begin_ns,
                    .end_ns = paces[(fastest + 1) * paces.size() / kParts - 1].end_ns};
  slowing.after = {.begin_ns = paces[at].begin_ns, .end_ns = paces.back().end_ns};
  slowing.steps = paces.size();
  for (size_t i = at; i < paces.size(); ++i) {
    slowing.lost_s += paces[i].spent_s * std::max(0.0, 1 - slowing.early / paces[i].cost);
  }
  return slowing;
}

model::Message Since(const Pace& from) {
  if (from.step == model::kNotKnown) return {};
  return Say(" from step {} on", "（自第 {} 步起）", from.step);
}

Finding Told(const Facts& facts, const RankFacts& rank, const Slowing& slowing) {
  Finding finding;
  const bool much = slowing.Ratio() >= facts.limits()["slowing_down.warning_ratio"];
  finding.severity = much ? Severity::kWarning : Severity::kInfo;
  finding.rank = rank.rank;
  finding.pid = rank.pid;
  finding.confidence = 0.8;
  const model::Message since = Since(slowing.from);
  const std::string ratio = SayNumber(slowing.Ratio());
  if (slowing.by_rate) {
    finding.summary.en =
        fmt::format("{} went from {} to {} a second: {} times slower{}.", rank.name,
                    SayNumber(1 / slowing.early), SayNumber(1 / slowing.late), ratio, since.en);
    finding.summary.zh =
        fmt::format("{} 的吞吐从每秒 {} 降到 {}：慢了 {} 倍{}。", rank.name,
                    SayNumber(1 / slowing.early), SayNumber(1 / slowing.late), ratio, since.zh);
  } else {
    finding.summary.en = fmt::format("{} takes {} times as long for a step as before{}.", rank.name,
                                     ratio, since.en);
    finding.summary.zh = fmt::format("{} 的每步用时是之前的 {} 倍{}。", rank.name, ratio, since.zh);
  }
  finding.explanation = Say(
      "Medians of eighths of the {} steps told: the last two against the fastest of the first "
      "half. Sequences or images that grow by design look the same.",
      "将所记录的 {} 个步骤分为八段取中位数：最后两段与前半中最快的一段相比。按设计逐渐变长的序列"
      "或变大的图像看起来也是这样。",
      slowing.steps);
  finding.advice = {
      {.framework = "",
       .text = Say(
           "Look at what changed there: something that grows with each step (a list of "
           "tensors, metrics over all samples so far), a disk or cache that filled up, a "
           "GPU that became hot, or another job beside it.",
           "查看该处发生了什么变化：随步数增长的东西（张量列表、对全部样本累计的指标）、写满的磁"
           "盘或缓存、过热的 GPU，或同机的其他作业。"),
       .code = ""}};
  if (slowing.lost_s > 0) {
    finding.lost_gpu_s =
        slowing.lost_s * static_cast<double>(std::max<size_t>(rank.gpus.size(), 1));
    finding.gain_ratio = std::min(1.0, slowing.lost_s / std::max(facts.duration_s(), 1e-9));
  }
  const std::string series = rank.name + (slowing.by_rate ? " throughput_per_s" : " duration_s");
  model::Evidence evidence{
      .series = series,
      .interval = slowing.after,
      .values = {{"slower_ratio", slowing.Ratio()}, {"steps", static_cast<double>(slowing.steps)}}};
  if (slowing.from.step != model::kNotKnown) evidence.steps.push_back(slowing.from.step);
  finding.evidence = {std::move(evidence)};
  return finding;
}

Judgement Judge(const Facts& facts) {
  Judgement judgement;
  bool any = false;
  for (const RankFacts& rank : facts.ranks()) {
    std::vector<Pace> paces = Durations(rank);
    const bool by_rate = paces.size() < kFewestSteps;
    if (by_rate) paces = Rates(rank);
    if (paces.size() < kFewestSteps) continue;
    any = true;
    auto slowing = SlowingOf(paces, facts.limits()["slowing_down.info_ratio"]);
    if (!slowing || judgement.findings.size() == kMostFindings) continue;
    slowing->by_rate = by_rate;
    judgement.findings.push_back(Told(facts, rank, *slowing));
  }
  if (any) return judgement;
  return NotApplicable(Say("fewer than {} steps told their duration or a throughput",
                           "记录了时长或吞吐的步骤少于 {} 个", kFewestSteps));
}

model::Message Title() { return Say("The training became slower", "训练变慢了"); }

}  // namespace

const RuleDef rules::kSlowingDown = {.id = "slowing_down", .Title = Title, .Judge = Judge};

}  // namespace epochmeter::diagnose
